"""Rows of what users define: found by ref or id, listed in pages, written, removed. One way for every kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec
import sqlalchemy as sa

from attune.catalog import model
from attune.catalog.equality import same
from attune.catalog.refs import pack_part, shown
from attune.catalog.versions import raise_version
from attune.kernel.errors import DuplicateRow, InvalidInput, NotFound
from attune.kernel.ids import PackId
from attune.store import schema
from attune.store.database import Tx
from attune.store.values import Json

R = TypeVar("R", bound=model.Row)

TOPIC: Final = "catalog"

_MICROSECOND: Final = timedelta(microseconds=1)
LARGEST_PAGE: Final = 100


@dataclass(frozen=True, eq=False)
class Kind(Generic[R]):
    """A noun with its table and row."""

    noun: str
    table: sa.Table
    row: type[R]

    @property
    def named(self) -> str:
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


PACKS: Final = Kind("pack", schema.pack, model.Pack)
PERMISSION_SETS: Final = Kind("permission set", schema.permission_set, model.PermissionSet)
RUNTIMES: Final = Kind("runtime", schema.runtime, model.Runtime)
TRIGGERS: Final = Kind("trigger", schema.trigger, model.Trigger)
ACTIONS: Final = Kind("action", schema.action, model.Action)
POLICIES: Final = Kind("policy", schema.policy, model.Policy)
RULES: Final = Kind("rule", schema.rule, model.Rule)


class Page(msgspec.Struct, Generic[R], frozen=True):
    """`page` counts from 1; `total` is of all pages."""

    items: list[R]
    page: int
    page_size: int
    total: int


class _Key(msgspec.Struct, frozen=True):
    id: int
    ref: str


async def find(
    tx: Tx, kind: Kind[R], key: str | int, where: str = "true", **values: Any
) -> R | None:
    """By ref, or by id (a number, also one written as text, as paths have it); if `where` holds for it, too."""
    number = _as_id(key)
    column, value = ("ref", key) if number is None else ("id", number)
    if "\0" in str(value):  # PostgreSQL knows no such text and would complain
        return None
    statement = _select(kind, f"WHERE {column} = :value AND {where}")
    return await tx.first(kind.row, statement, value=value, **values)


async def get(tx: Tx, kind: Kind[R], key: str | int, where: str = "true", **values: Any) -> R:
    found = await find(tx, kind, key, where, **values)
    if found is None:
        raise NotFound(f"There is no {kind.noun} {shown(str(key))}.", ref=str(key))
    return found


async def lock(tx: Tx, kind: Kind[R], ref: str) -> R | None:
    """The row, held until the transaction ends."""
    return await tx.first(kind.row, _select(kind, "WHERE ref = :ref FOR UPDATE"), ref=ref)


async def page(
    tx: Tx, kind: Kind[R], number: int = 1, size: int = 50, where: str = "", **values: Any
) -> Page[R]:
    """By ref ascending. `where` is a condition of our own text over `values`."""
    if number < 1 or size < 1:
        raise InvalidInput("page: counts from 1", field="page" if number < 1 else "page_size")
    size = min(size, LARGEST_PAGE)
    condition = f"WHERE {where}" if where else ""
    total = await tx.one(int, _count(kind, condition), **values)
    items = await tx.all(
        kind.row,
        _select(kind, f"{condition} ORDER BY ref LIMIT :size OFFSET :skipped"),
        size=size,
        skipped=min((number - 1) * size, 2**62),
        **values,
    )
    return Page(items, number, size, total)


async def of_pack(tx: Tx, kind: Kind[R], pack: PackId, refs: list[str]) -> dict[str, R]:
    """What the pack has, and whatever else holds one of the refs."""
    rows = await tx.all(
        kind.row,
        _select(kind, "WHERE pack = :pack OR ref = ANY(:refs::text[]) ORDER BY ref"),
        pack=pack,
        refs=refs,
    )
    return {row.ref: row for row in rows}


async def ids(tx: Tx, kind: Kind[Any], where: str = "", **values: Any) -> dict[str, int]:
    """Refs with their ids: all, or those for which a condition holds."""
    keys = await tx.all(_Key, _keys(kind, f"WHERE {where}" if where else ""), **values)
    return {key.ref: key.id for key in keys}


async def next_id(tx: Tx, kind: Kind[Any]) -> int:
    [new] = await tx.next_ids(kind.table)
    return new


async def add(tx: Tx, kind: Kind[R], row: R) -> R:
    """`DuplicateRow` names the ref that is taken."""
    if await tx.insert(kind.table, [row], skip_existing=True) == 0:
        raise DuplicateRow(f"There is {kind.named} '{row.ref}' already.", ref=row.ref)
    await changed(tx, row)
    return row


async def change(
    tx: Tx, kind: Kind[R], row: R, changes: Mapping[str, Any], now: datetime, **hidden: Any
) -> R:
    """Write the fields that differ, and `updated` with them; nothing at all if none does.

    `hidden` are columns that the row does not show; they are always written. `updated` rises with every change,
    whatever the clocks say: others know by it what they have seen already.
    """
    differing = {name: v for name, v in changes.items() if not same(getattr(row, name), v)}
    if not differing and not hidden:
        return row
    now = max(now, row.updated + _MICROSECOND)
    written = {**differing, **hidden, "updated": now}
    columns = kind.table.columns
    values = {
        name: Json(value) if _is_json(columns[name]) and value is not None else value
        for name, value in written.items()
    }
    await tx.execute(_update(kind, tuple(sorted(written))), id=row.id, **values)
    await changed(tx, row)
    return msgspec.structs.replace(row, **differing, updated=now)


async def remove(tx: Tx, kind: Kind[R], row: R) -> None:
    await tx.execute(_delete(kind), id=row.id)
    await changed(tx, row)


async def changed(tx: Tx, row: model.Row) -> None:
    """Other processes hold compiled rules and schemas: the version tells that they are stale, the wake says so now."""
    await announce(tx, getattr(row, "pack_ref", None) or pack_part(row.ref))


async def announce(tx: Tx, pack_ref: str) -> None:
    """Once in a transaction is enough for the version; each pack is named to those who listen."""
    if not any(topic == TOPIC for topic, _ in tx.wakes):
        await raise_version(tx)
    tx.wake(TOPIC, pack_ref)


def _as_id(key: str | int) -> int | None:
    if isinstance(key, int):
        return key
    return int(key) if key.isascii() and key.isdigit() and len(key) < 19 else None


def _is_json(column: sa.Column[Any]) -> bool:
    return column.type is schema.JsonText


# The names in these statements are those of our own tables and structs.
@cache
def _select(kind: Kind[Any], rest: str) -> str:
    return f"SELECT {', '.join(kind.row.__struct_fields__)} FROM {kind.table.name} {rest}"  # noqa: S608


@cache
def _keys(kind: Kind[Any], rest: str) -> str:
    return f"SELECT id, ref FROM {kind.table.name} {rest}"  # noqa: S608


@cache
def _count(kind: Kind[Any], rest: str) -> str:
    return f"SELECT count(*) FROM {kind.table.name} {rest}"  # noqa: S608


@cache
def _update(kind: Kind[Any], names: tuple[str, ...]) -> str:
    sets = ", ".join(f"{name} = :{name}" for name in names)
    return f"UPDATE {kind.table.name} SET {sets} WHERE id = :id"  # noqa: S608


@cache
def _delete(kind: Kind[Any]) -> str:
    return f"DELETE FROM {kind.table.name} WHERE id = :id"  # noqa: S608
