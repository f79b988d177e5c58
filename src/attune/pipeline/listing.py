"""Lists that grow without end: newest first, reached by id, and counted only for those who ask.

A page first finds its ids, which an index has, and then reads the rows that it shows. So rows that are passed
over on the way to a deep page are never read whole, and what can be large is not read at all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from attune.identities.row_conditions import ALWAYS, NEVER, Condition
from attune.store.database import Tx

T = TypeVar("T", bound=msgspec.Struct)

WHOLE_PACK: Final = ".*"


class Window(msgspec.Struct, frozen=True):
    """Which rows of a list: those below the id `before`, from `offset` on, `limit` at most."""

    limit: int
    offset: int = 0
    before: int | None = None


class Source(msgspec.Struct, frozen=True):
    """A FROM that has the listed table as `x`, and the column by which it is walked through.

    `beside` are further ones, without a row of the first, that are walked through side by side with it.
    """

    sql: str
    id: str = "x.id"
    beside: tuple[str, ...] = ()

    @property
    def arms(self) -> tuple[str, ...]:
        return (self.sql, *self.beside)


@dataclass(frozen=True, eq=False)
class Listed(Generic[T]):
    """A table and what a list shows of it. Conditions know the table as `x`."""

    table: str
    row: type[T]
    columns: str

    @property
    def source(self) -> Source:
        return Source(f"{self.table} x")


def all_of(conditions: Iterable[Condition]) -> Condition:
    parts = [each for each in conditions if each.sql != ALWAYS.sql]
    if any(each.sql == NEVER.sql for each in parts):
        return NEVER
    values = {name: value for each in parts for name, value in each.values.items()}
    return Condition(" AND ".join(each.sql for each in parts), values) if parts else ALWAYS


def equals(column: str, name: str, value: Any) -> Condition:
    """Null is no wish."""
    return ALWAYS if value is None else Condition(f"x.{column} = :{name}", {name: value})


def ref_like(column: str, wanted: str | None) -> Condition:
    """A ref, or `pack.*` for everything of a pack."""
    if wanted is None or not wanted.endswith(WHOLE_PACK):
        return equals(column, column, wanted)
    prefix = wanted.removesuffix("*")
    start = f"substr(x.{column}, 1, :{column}_length) = :{column}_start"
    return Condition(start, {f"{column}_length": len(prefix), f"{column}_start": prefix})


def pack_of(column: str) -> str:
    """SQL for the first word of a ref, in words that both databases know."""
    rest = f"ltrim({column}, replace({column}, '.', ''))"
    return f"substr({column}, 1, length({column}) - length({rest}))"


async def newest(
    tx: Tx, listed: Listed[T], where: Condition, window: Window, source: Source | None = None
) -> list[T]:
    """`source` is one that finds the rows faster than the table alone."""
    if where.sql == NEVER.sql:
        return []
    walked = source or listed.source
    below = Condition(f"{walked.id} < :before", {"before": window.before})
    found = all_of([where, below if window.before is not None else ALWAYS])
    if walked.beside:
        return await _side_by_side(tx, listed, found, window, walked)
    return await tx.all(
        listed.row,
        _page(listed.table, listed.columns, walked.id, walked.sql, found.sql),
        rows_at_most=window.limit,
        rows_skipped=window.offset,
        **found.values,
    )


async def _side_by_side(
    tx: Tx, listed: Listed[T], where: Condition, window: Window, walked: Source
) -> list[T]:
    """Each is walked through by its own index, as far as the page may need of it."""
    most = window.offset + window.limit
    ids: list[int] = []
    for arm in walked.arms:
        sql = _ids(walked.id, arm, where.sql)
        ids += await tx.all(int, sql, rows_at_most=most, rows_skipped=0, **where.values)
    shown = sorted(ids, reverse=True)[window.offset : most]
    # The names are those of our own tables and structs.
    rows = f"SELECT {listed.columns} FROM {listed.table} x WHERE x.id = ANY(:ids::bigint[])"  # noqa: S608
    return await tx.all(listed.row, f"{rows} ORDER BY x.id DESC", ids=shown)


async def total(tx: Tx, listed: Listed[T], where: Condition, source: Source | None = None) -> int:
    walked = source or listed.source
    # The names are our own.
    counts = [f"(SELECT count(*) FROM {arm} WHERE {where.sql})" for arm in walked.arms]  # noqa: S608
    return await tx.one(int, f"SELECT {' + '.join(counts)}", **where.values)


def _page(table: str, columns: str, id_: str, source: str, where: str) -> str:
    # The names are those of our own tables and structs.
    return f"""
        SELECT {columns} FROM {table} x
         WHERE x.id = ANY(ARRAY({_ids(id_, source, where)}))
         ORDER BY x.id DESC
    """  # noqa: S608


def _ids(id_: str, source: str, where: str) -> str:
    return f"""
        SELECT {id_} FROM {source} WHERE {where}
         ORDER BY {id_} DESC LIMIT :rows_at_most OFFSET :rows_skipped
    """  # noqa: S608 - our own names
