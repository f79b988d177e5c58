"""Settings that may be changed while everything runs. A change holds for every process from the next step on.

The table has a row for each that was set; one that has none has its default, which is the configuration's or follows
from who is there. Steps read them in their own transaction, so nobody acts on an old one.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any, Final

import msgspec

from attune.kernel.errors import InvalidInput
from attune.kernel.ids import IdentityId
from attune.store.database import Tx
from attune.store.values import Json

TOPIC: Final = "settings"

_LARGEST: Final = 2**31 - 1
_LONGEST_SECONDS: Final = 1e9

# Others keep rows of their own in the table, under names with a dot.
_LOAD: Final = "SELECT name, value FROM setting WHERE name = ANY(:names::text[])"
_FORGET: Final = "DELETE FROM setting WHERE name = ANY(:names::text[])"
_SAVE: Final = """
    INSERT INTO setting (name, value, updated, updated_by) VALUES (:name, :value, :now, :by)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated = excluded.updated,
                                     updated_by = excluded.updated_by
"""


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """As they were set; null for the default.

    `max_concurrent_executions` is how many workers may have at once: by default what the active ones can take
    together; 0 holds everything. `max_queue_length` and `queue_timeout_seconds` override the configuration.
    `ageing_seconds` of waiting raise an execution by one band; by default nothing does.
    """

    max_concurrent_executions: int | None = None
    max_queue_length: int | None = None
    queue_timeout_seconds: float | None = None
    ageing_seconds: float | None = None


class SettingsInForce(msgspec.Struct, frozen=True, kw_only=True):
    """What holds now, defaults filled in; `ageing_seconds` is null where waiting raises nobody."""

    max_concurrent_executions: int
    max_queue_length: int
    queue_timeout_seconds: float
    ageing_seconds: float | None


class _Row(msgspec.Struct, frozen=True):
    name: str
    value: Any


def in_force(chosen: RuntimeSettings, defaults: SettingsInForce) -> SettingsInForce:
    return msgspec.structs.replace(
        defaults,
        **{name: value for name in NAMES if (value := getattr(chosen, name)) is not None},
    )


async def load_settings(tx: Tx) -> RuntimeSettings:
    found = await tx.all(_Row, _LOAD, names=list(NAMES))
    return RuntimeSettings(**{row.name: row.value for row in found})


async def change_settings(
    tx: Tx, changes: Mapping[str, Any], by: IdentityId | None, now: datetime
) -> RuntimeSettings:
    """Set what is named, all of it or nothing; null brings back the default."""
    _check(changes)
    gone = sorted(name for name, value in changes.items() if value is None)
    if gone:
        await tx.execute(_FORGET, names=gone)
    for name, value in sorted(changes.items()):
        if value is not None:
            await tx.execute(_SAVE, name=name, value=Json(value), now=now, by=by)
    if changes:
        tx.wake(TOPIC)
    return await load_settings(tx)


def _check(changes: Mapping[str, Any]) -> None:
    problems = {name: rule for name, value in changes.items() if (rule := _broken(name, value))}
    if problems:
        sentence = "; ".join(f"{name}: {rule}" for name, rule in problems.items())
        raise InvalidInput(sentence, field=next(iter(problems)), problems=problems)


def _broken(name: str, value: Any) -> str | None:
    """The rule that the value breaks; null if it may be set."""
    if name not in _RULES:
        return f"there is no such setting; there are {', '.join(NAMES)}"
    return None if value is None else _RULES[name](value)


def _whole_from(least: int) -> Callable[[Any], str | None]:
    def rule(value: Any) -> str | None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and least <= value <= _LARGEST:
            return None
        return f"must be a whole number from {least} to {_LARGEST}, or null for the default"

    return rule


def _seconds(value: Any) -> str | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and isfinite(value) and 0 < value <= _LONGEST_SECONDS:
        return None
    return f"must be a number of seconds above 0, at most {_LONGEST_SECONDS:.0f}, or null for the default"


_RULES: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "max_concurrent_executions": _whole_from(0),
    "max_queue_length": _whole_from(1),
    "queue_timeout_seconds": _seconds,
    "ageing_seconds": _seconds,
}
NAMES: Final = tuple(_RULES)
