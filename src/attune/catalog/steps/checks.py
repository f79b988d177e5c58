"""Rules of single fields, for what is written over the API; files are checked by the same functions."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET

from attune.catalog.placement import SHAPES, placement_fault
from attune.catalog.refs import unknown_word
from attune.catalog.retry_rules import limits_faults, retry_faults
from attune.catalog.runners import (
    DELIVERIES,
    ON_WORKER_LOST,
    OUTPUT_FORMATS,
    PARAMETER_FORMATS,
)
from attune.catalog.schemas import schema_fault
from attune.catalog.version_constraints import constraint_fault
from attune.kernel.errors import InvalidInput

Check = Callable[[Any], str | None]
Faults = dict[str, str]


def given(changes: msgspec.Struct) -> dict[str, Any]:
    """The fields that a change names; the others stay as they are."""
    fields = msgspec.structs.asdict(changes)
    return {name: value for name, value in fields.items() if value is not UNSET}


def check_fields(values: Mapping[str, Any]) -> None:
    """`InvalidInput` that names every field which breaks its rule."""
    problems: dict[str, str] = {}
    for name, value in values.items():
        if name in _CHECKS and (rule := _CHECKS[name](value)):
            problems[name] = rule
        elif name in _WIDE_CHECKS:
            problems |= _WIDE_CHECKS[name](value)
    refuse(problems)


def refuse(problems: Faults) -> None:
    """`InvalidInput` that tells all of them; nothing where there is none."""
    if problems:
        text = "; ".join(f"{name}: {rule}" for name, rule in problems.items())
        raise InvalidInput(text, field=next(iter(problems)), problems=problems)


def runtime_faults(value: Any, place: str = "required_worker_runtimes") -> Faults:
    """Of the versions that a worker must have of each of these runtimes."""
    return {
        f"{place}.{name[:80]}": rule
        for name, text in value.items()
        if (rule := constraint_fault(text))
    }


def _schema(value: Any) -> str | None:
    wrong = None if value is None else schema_fault(value)
    return str(wrong) if wrong else None


def _filled(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "is required"


def _one_of(words: Collection[str], value: Any) -> str | None:
    return None if value in words else unknown_word(str(value), words)


def _at_least(least: int, value: Any) -> str | None:
    if value is None or least <= value < 2**31:
        return None
    return f"must be at least {least}" if value < least else "is too large"


def _constraint(value: Any) -> str | None:
    return None if value is None else constraint_fault(value)


_CHECKS: Final[dict[str, Check]] = {
    "label": _filled,
    "name": _filled,
    "version": _filled,
    "param_schema": _schema,
    "out_schema": _schema,
    "conf_schema": _schema,
    "parameter_delivery": partial(_one_of, DELIVERIES),
    "parameter_format": partial(_one_of, PARAMETER_FORMATS),
    "output_format": partial(_one_of, OUTPUT_FORMATS),
    "on_worker_lost": partial(_one_of, ON_WORKER_LOST),
    "timeout_seconds": partial(_at_least, 1),
    "max_retries": partial(_at_least, 0),
    "runtime_version_constraint": _constraint,
    **{name: partial(placement_fault, name) for name in SHAPES},
}
# These name the field inside that is wrong.
_WIDE_CHECKS: Final[dict[str, Callable[[Any], Faults]]] = {
    "retry": retry_faults,
    "limits": limits_faults,
    "required_worker_runtimes": runtime_faults,
}
