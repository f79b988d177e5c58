"""What must change so that a pack's rows are what its files say. Pure: rows and values in, a plan out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from attune.catalog.equality import same
from attune.catalog.loading.model import Changes
from attune.catalog.model import Row
from attune.kernel.errors import Conflict
from attune.kernel.ids import PackId

R = TypeVar("R", bound=Row)
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan(Generic[R]):
    """`update` has the fields that differ. Rows that users made by hand are in none of these."""

    create: dict[str, Values]
    update: dict[str, tuple[R, Values]]
    remove: dict[str, R]
    unchanged: dict[str, R]

    @property
    def changes(self) -> Changes:
        return Changes(
            tuple(self.create), tuple(self.update), tuple(self.remove), tuple(self.unchanged)
        )


def plan(
    noun: str, pack: PackId, present: Mapping[str, R], wanted: Mapping[str, Values], switch: str
) -> Plan[R]:
    """`switch` is the field that users may change themselves, or "" where there is none."""
    found: Plan[R] = Plan({}, {}, {}, {})
    for ref, values in wanted.items():
        row = present.get(ref)
        if row is None:
            found.create[ref] = _declaring(values, switch)
            continue
        _check_own(noun, pack, row)
        differing = _differing(row, _carried(row, values, switch))
        if differing:
            found.update[ref] = (row, differing)
        else:
            found.unchanged[ref] = row
    for ref, row in present.items():
        if ref not in wanted and _is_from_files(row, pack):
            found.remove[ref] = row
    return found


def carried_over(current: Any, declared_before: Any, declared_now: Any) -> Any:
    """A user's own choice stays; what nobody touched follows the files."""
    return declared_now if same(current, declared_before) else current


def carried_config(current: Values, before: Values, now: Values) -> dict[str, Any]:
    """The same for each key of a pack's configuration; a key that a user took out stays out."""
    found = {}
    for key in {**now, **current}:
        value = carried_over(
            current.get(key, _ABSENT), before.get(key, _ABSENT), now.get(key, _ABSENT)
        )
        if value is not _ABSENT:
            found[key] = value
    return found


_ABSENT = object()


def _declaring(values: Values, switch: str) -> Values:
    return {**values, "declared": {switch: values[switch]}} if switch else values


def _carried(row: Row, values: Values, switch: str) -> Values:
    if not switch:
        return values
    before = getattr(row, "declared", None) or {}
    stays = carried_over(getattr(row, switch), before.get(switch), values[switch])
    return {**_declaring(values, switch), switch: stays}


def _differing(row: Row, values: Values) -> Values:
    return {name: v for name, v in values.items() if not same(getattr(row, name), v)}


def _is_from_files(row: Row, pack: PackId) -> bool:
    return getattr(row, "pack", None) == pack and not getattr(row, "is_adhoc", False)


def _check_own(noun: str, pack: PackId, row: Row) -> None:
    """What a user made by hand is not overwritten without a word."""
    if not _is_from_files(row, pack):
        raise Conflict(
            f"The {noun} '{row.ref}' was made by hand; remove it, or rename the one in the pack.",
            ref=row.ref,
        )
