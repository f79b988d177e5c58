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
    """A FROM that has the listed table as `x`, and the column by which it is walked through."""

    sql: str
    id: str = "x.id"


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
    return await tx.all(
        listed.row,
        _page(listed.table, listed.columns, walked, found.sql),
        rows_at_most=window.limit,
        rows_skipped=window.offset,
        **found.values,
    )


async def total(tx: Tx, listed: Listed[T], where: Condition, source: Source | None = None) -> int:
    walked = source or listed.source
    sql = f"SELECT count(*) FROM {walked.sql} WHERE {where.sql}"  # noqa: S608 - our own names
    return await tx.one(int, sql, **where.values)


def _page(table: str, columns: str, source: Source, where: str) -> str:
    # The names are those of our own tables and structs.
    return f"""
        SELECT {columns} FROM {table} x
         WHERE x.id = ANY(ARRAY(SELECT {source.id} FROM {source.sql} WHERE {where}
                                 ORDER BY {source.id} DESC LIMIT :rows_at_most OFFSET :rows_skipped))
         ORDER BY x.id DESC
    """  # noqa: S608
