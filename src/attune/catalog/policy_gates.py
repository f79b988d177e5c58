"""The parts of a policy as they are written, each a small object with rules for its fields.

An unknown field is a fault here, although it is ignored elsewhere: a limit that a slip of the pen turned into
another one would bind people who never learn of it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from attune.catalog.policy_times import (
    DAYS,
    DEFAULT_ZONE,
    blackout_span,
    end_fault,
    moment_fault,
    start_fault,
    zone_fault,
)
from attune.catalog.refs import close_word, unknown_word

LARGEST: Final = 2**31 - 1
METHODS: Final = ("cancel", "enqueue")
QUOTA_TYPES: Final = ("executions_total", "running_executions")
AUTO: Final = "auto"

Faults = dict[str, str]
Check = Callable[[Any], str | None]

_KINDS: Final = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value"}


@dataclass(frozen=True)
class Shape:
    """The fields of an object. An absent field and a null are the same."""

    fields: Mapping[str, Check]
    required: Collection[str] = ()

    def faults(self, value: Any, place: str) -> Iterator[tuple[str, str]]:
        if not isinstance(value, dict):
            yield place, f"must be a mapping, not {kind_of(value)}"
            return
        for name in (name for name in value if name not in self.fields):
            meant = close_word(name, self.fields)
            hint = f"did you mean '{meant}'?" if meant else f"known are {', '.join(self.fields)}"
            yield f"{place}.{name[:80]}", f"an unknown field; {hint}"
        for name, check in self.fields.items():
            if (written := value.get(name)) is not None:
                rule = check(written)
            else:
                rule = "is required" if name in self.required else None
            if rule:
                yield f"{place}.{name}", rule


def kind_of(value: Any) -> str:
    return _KINDS.get(type(value), "a number")


def whole(least: int, value: Any) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return f"must be an integer, not {kind_of(value)}"
    if least <= value <= LARGEST:
        return None
    return f"must be at least {least}" if value < least else "is too large"


def text(value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be text, not {kind_of(value)}"
    return None if value.strip() else "must not be empty"


def one_of(words: Collection[str], value: Any) -> str | None:
    return text(value) or (None if value in words else unknown_word(value, words))


def _limit(value: Any) -> str | None:
    if isinstance(value, str):
        return None if value == AUTO else f"must be an integer or '{AUTO}', not a text"
    return whole(0, value)


def _seconds(value: Any) -> str | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"must be a number, not {kind_of(value)}"
    if 0 < value <= LARGEST:
        return None
    return "is too large" if value > LARGEST else "must be above 0"


def _names(value: Any) -> str | None:
    if not isinstance(value, list) or any(text(each) for each in value):
        return "must be a list of names of parameters"
    twice = next((each for each in value if value.count(each) > 1), None)
    return f"names {twice!r} twice" if twice else None


def _days(value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return f"must be a list of days: {', '.join(DAYS)}"
    if not value:
        return "must name at least one day"
    return next((unknown_word(each, DAYS, "day") for each in value if each not in DAYS), None)


def _written(rule: Check, value: Any) -> str | None:
    return text(value) or rule(value)


CONCURRENCY: Final = Shape(
    {
        "limit": _limit,
        "floor": partial(whole, 1),
        "ceiling": partial(whole, 1),
        "method": partial(one_of, METHODS),
        "parameters": _names,
    }
)
_RATE: Final = Shape(
    {"max_executions": partial(whole, 1), "window_seconds": _seconds},
    required=("max_executions", "window_seconds"),
)
_LISTS: Final = {
    "quotas": Shape(
        {
            "quota_type": partial(one_of, QUOTA_TYPES),
            "limit": partial(whole, 0),
            "per": partial(one_of, ("identity",)),
        },
        required=("quota_type", "limit"),
    ),
    "windows": Shape(
        {
            "days": _days,
            "start": partial(_written, start_fault),
            "end": partial(_written, end_fault),
            "timezone": partial(_written, zone_fault),
        },
        required=("start", "end"),
    ),
    "blackouts": Shape(
        {"from": partial(_written, moment_fault), "to": partial(_written, moment_fault)},
        required=("from", "to"),
    ),
}
MOST: Final = {"quotas": 20, "windows": 50, "blackouts": 500}
GATES: Final = ("rate_limit", *_LISTS)


def gate_faults(written: Mapping[str, Any]) -> Faults:
    """Of rate limit, quotas, windows and blackouts; what is absent or null has none."""
    found: Faults = {}
    if (rate := written.get("rate_limit")) is not None:
        found |= _RATE.faults(rate, "rate_limit")
    for name, shape in _LISTS.items():
        if (items := written.get(name)) is not None:
            found |= _list_faults(name, shape, items)
    return found


def filled(name: str, value: Any) -> Any:
    """A sound gate as it is kept: without nulls, and with the defaults of a window written out."""
    if name == "rate_limit":
        return value
    defaults = {"days": list(DAYS), "timezone": DEFAULT_ZONE} if name == "windows" else {}
    return [
        {**defaults, **{key: v for key, v in item.items() if v is not None}} for item in value or ()
    ]


def _list_faults(name: str, shape: Shape, items: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(items, list):
        yield name, f"must be a list, not {kind_of(items)}"
        return
    if len(items) > MOST[name]:
        yield name, f"must not have more than {MOST[name]}"
        return
    for number, item in enumerate(items):
        place = f"{name}.{number}"
        wrong = dict(shape.faults(item, place))
        yield from wrong.items()
        if name == "blackouts" and not wrong and (rule := _order_fault(item)):
            yield f"{place}.to", rule


def _order_fault(blackout: Mapping[str, str]) -> str | None:
    begin, end = blackout_span(blackout["from"], blackout["to"])
    return None if begin < end else "must be after 'from'"
