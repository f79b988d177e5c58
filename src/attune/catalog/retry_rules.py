"""What may be said of retries and limits, for files and for the API alike. The shapes are in `retrying`.

An unknown field is a fault here: a misspelt limit would bind nothing, and nobody would learn of it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar, get_args, get_type_hints

import msgspec

from attune.catalog.policy_gates import LARGEST, Faults, Shape, kind_of, one_of, whole
from attune.catalog.refs import shown
from attune.catalog.retrying import TEN_YEARS, Cause, Limits, Retry
from attune.expressions.budget import Budget
from attune.expressions.errors import ExpressionError, TooCostly
from attune.expressions.patterns import LONGEST_PATTERN, compile_pattern

T = TypeVar("T", Retry, Limits)
Check = Callable[[Any], str | None]

BACKOFFS: Final = get_args(get_type_hints(Retry)["backoff"])
PLACES: Final = get_args(get_type_hints(Retry)["queue_place"])
CAUSES: Final = tuple(cause.value for cause in Cause)
MOST_RETRIES: Final = 1000
MOST_PATTERNS: Final = 50
LARGEST_EXIT_CODE: Final = 255
MOST_OUTPUT_MB: Final = 100

# As much of an error as is ever matched: what is affordable for it is affordable for all.
_LONGEST_ERROR: Final = " " * 10_000


def retry_faults(written: Any, place: str = "retry") -> Faults:
    """Rules that it breaks, each under the way to its field; null has none, nor what was read before."""
    if written is None or isinstance(written, Retry):
        return {}
    found = dict(_RETRY.faults(written, place))
    return found or dict(_narrowing_faults(written, place))


def limits_faults(written: Any, place: str = "limits") -> Faults:
    if written is None or isinstance(written, Limits):
        return {}
    return dict(_LIMITS.faults(written, place))


def retry_of(written: Mapping[str, Any] | Retry | None) -> Retry | None:
    """What was written without a fault; a field that is null is the same as one that is absent."""
    return _read(written, Retry)


def limits_of(written: Mapping[str, Any] | Limits | None) -> Limits | None:
    return _read(written, Limits)


def resolved(how: Retry) -> dict[str, Any]:
    """Every field with the value that counts, also where that is the default."""
    return {name: msgspec.to_builtins(getattr(how, name)) for name in Retry.__struct_fields__}


def _read(written: Mapping[str, Any] | T | None, shape: type[T]) -> T | None:
    if not isinstance(written, Mapping):
        return written
    named = {name: value for name, value in written.items() if value is not None}
    return msgspec.convert(named, shape)


def _narrowing_faults(written: Mapping[str, Any], place: str) -> Faults:
    """Exit codes and patterns choose among failures; without these they would silently mean nothing."""
    causes = written.get("on")
    if causes is None or Cause.FAILED in causes:
        return {}
    rule = f"only says which of '{Cause.FAILED}' count, and 'on' does not name that"
    return {f"{place}.{name}": rule for name in ("exit_codes", "matching") if written.get(name)}


def _number(least: float, most: float, value: Any, *, above: bool = False) -> str | None:
    """`above`: the least is not allowed itself."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"must be a number, not {kind_of(value)}"
    if value < least or (above and value == least):
        return f"must be {'above' if above else 'at least'} {least:g}"
    return None if value <= most else f"must be at most {most:.10g}"


def _list(each: Check, most: int, value: Any) -> str | None:
    """Of different values that all pass a check."""
    if not isinstance(value, list):
        return f"must be a list, not {kind_of(value)}"
    if len(value) > most:
        return f"must not have more than {most}"
    if None in value:
        return "must not hold a null"
    rule = next((rule for one in value if (rule := each(one))), None)
    if rule:
        return rule
    twice = next((one for place, one in enumerate(value) if one in value[:place]), None)
    return None if twice is None else f"names {_named(twice)} twice"


def _named(value: Any) -> str:
    return shown(value) if isinstance(value, str) else str(value)


def _causes(value: Any) -> str | None:
    rule = _list(partial(one_of, CAUSES), len(CAUSES), value)
    return rule or (None if value else f"must name at least one of {', '.join(CAUSES)}")


def _exit_code(value: Any) -> str | None:
    rule = whole(1, value)
    if rule or value <= LARGEST_EXIT_CODE:
        return rule
    return f"must be at most {LARGEST_EXIT_CODE}, not {value}"


def _pattern(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be a list of texts, not of {kind_of(value)}"
    if not 1 <= len(value) <= LONGEST_PATTERN:
        return f"a pattern has 1 to {LONGEST_PATTERN} characters"
    try:
        compile_pattern(value).found_in(_LONGEST_ERROR, Budget())
    except TooCostly:
        return f"the pattern {shown(value)} takes too long to match"
    except ExpressionError as error:
        return error.problem
    return None


_DELAY: Final = partial(_number, 0, TEN_YEARS)
_COUNT: Final = partial(whole, 1)
_RETRY: Final = Shape(
    {
        "delay": _DELAY,
        "backoff": partial(one_of, BACKOFFS),
        "max_delay": _DELAY,
        "jitter": partial(_number, 0, 1),
        "on": _causes,
        "exit_codes": partial(_list, _exit_code, LARGEST_EXIT_CODE),
        "matching": partial(_list, _pattern, MOST_PATTERNS),
        "queue_place": partial(one_of, PLACES),
    }
)
_LIMITS: Final = Shape(
    {
        "cpu_seconds": partial(_number, 0, LARGEST, above=True),
        "memory_mb": _COUNT,
        "open_files": _COUNT,
        "processes": _COUNT,
        "output_mb": partial(_number, 0, MOST_OUTPUT_MB, above=True),
    }
)
