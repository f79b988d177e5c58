"""Retries and limits in bodies and answers. They are described here; `catalog/retry_rules.py` judges them."""

from typing import Annotated, Any, Final

import msgspec
from pydantic import BeforeValidator, WithJsonSchema

from attune.api.fields import JsonObject
from attune.catalog.policy_gates import LARGEST
from attune.catalog.retry_rules import (
    BACKOFFS,
    CAUSES,
    LARGEST_EXIT_CODE,
    MOST_OUTPUT_MB,
    MOST_PATTERNS,
    PLACES,
    resolved,
)
from attune.catalog.retrying import TEN_YEARS, Retries
from attune.expressions.patterns import LONGEST_PATTERN

Described = dict[str, Any]


def _object(example: Described, **properties: Described) -> Described:
    """Every field may be absent or null."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: {"anyOf": [each, {"type": "null"}]} for name, each in properties.items()
        },
        "examples": [example],
    }


def _number(description: str, most: float, **bounds: float) -> Described:
    return {"type": "number", "maximum": most, "description": description, **bounds}


def _count(description: str) -> Described:
    return {"type": "integer", "minimum": 1, "maximum": LARGEST, "description": description}


def _list(description: str, item: Described, most: int) -> Described:
    return {
        "type": "array",
        "items": item,
        "maxItems": most,
        "uniqueItems": True,
        "description": description,
    }


_RETRY: Final = _object(
    {"delay": 10, "backoff": "exponential", "max_delay": 300, "jitter": 0.2},
    delay=_number("Seconds before the next attempt; 0 by default.", TEN_YEARS, minimum=0),
    backoff={
        "enum": list(BACKOFFS),
        "description": "Before attempt n+1 it waits: constant d, linear d·n, exponential d·2^(n-1).",
    },
    max_delay=_number("No wait is longer.", TEN_YEARS, minimum=0),
    jitter=_number("Each wait is shorter by up to this share, at random.", 1, minimum=0),
    on={
        **_list("After what there is another attempt; all by default.", {"enum": [*CAUSES]}, 4),
        "minItems": 1,
    },
    exit_codes=_list(
        "Of failures, only those with one of these, or whose error matches.",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_EXIT_CODE},
        LARGEST_EXIT_CODE,
    ),
    matching=_list(
        "Of failures, only those whose error matches one of these, or with such an exit code.",
        {"type": "string", "minLength": 1, "maxLength": LONGEST_PATTERN, "examples": ["timed out"]},
        MOST_PATTERNS,
    ),
    queue_place={
        "enum": list(PLACES),
        "description": "Where it stands in its queue then: where it stood, or behind the others.",
    },
)
_LIMITS: Final = _object(
    {"cpu_seconds": 60, "memory_mb": 512, "processes": 20},
    cpu_seconds=_number("Of each process.", LARGEST, exclusiveMinimum=0),
    memory_mb=_count("Of each process."),
    open_files=_count("Of each process."),
    processes=_count("At once, of one run."),
    output_mb=_number("How much of each stream is kept.", MOST_OUTPUT_MB, exclusiveMinimum=0),
)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def how(retries: Retries | None) -> JsonObject | None:
    """As an execution has resolved it."""
    return None if retries is None else resolved(retries.how)


def how_often(retries: Retries | None) -> int:
    return 0 if retries is None else retries.max_retries


RetryPart = Annotated[JsonObject, WithJsonSchema(_RETRY)]
LimitsPart = Annotated[JsonObject, WithJsonSchema(_LIMITS)]
ShownRetry = Annotated[RetryPart | None, BeforeValidator(_plain)]
ShownLimits = Annotated[LimitsPart | None, BeforeValidator(_plain)]
