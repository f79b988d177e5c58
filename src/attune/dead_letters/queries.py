"""Looking at dead letters. Lists never read a body."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from attune.dead_letters.model import Letter, LetterFilters, LetterSummary
from attune.kernel.ids import DeadLetterId
from attune.store.database import Tx

_COLUMNS: Final = """
    id, queue, reason, error, message_id, message_type, retry_count, length(body) AS size_bytes,
    died_at, replayed_at, replayed_by, replay_count, created, updated
"""
_WAITING: Final = "replayed_at IS NULL"
_EQUAL: Final = ("queue", "reason", "message_type")


async def list_letters(
    tx: Tx, filters: LetterFilters, limit: int, offset: int = 0
) -> list[LetterSummary]:
    """Newest first."""
    where, values = _where(filters)
    sql = f"""
        SELECT {_COLUMNS} FROM dead_letter WHERE {where}
         ORDER BY id DESC LIMIT :rows_at_most OFFSET :rows_skipped
    """  # noqa: S608 - our own names
    return await tx.all(LetterSummary, sql, rows_at_most=limit, rows_skipped=offset, **values)


async def count_letters(tx: Tx, filters: LetterFilters) -> int:
    where, values = _where(filters)
    sql = f"SELECT count(*) FROM dead_letter WHERE {where}"  # noqa: S608 - our own names
    return await tx.one(int, sql, **values)


async def depth(tx: Tx) -> int:
    """How many wait for a person: neither replayed nor deleted."""
    sql = f"SELECT count(*) FROM dead_letter WHERE {_WAITING}"  # noqa: S608 - our own names
    return await tx.one(int, sql)


async def newest_at(tx: Tx) -> datetime | None:
    """When the last of those that are kept now was; null where there are none."""
    return await tx.first(datetime, "SELECT max(created) FROM dead_letter")


async def find_letter(tx: Tx, letter: DeadLetterId) -> Letter | None:
    """With its body."""
    sql = f"SELECT {_COLUMNS}, body FROM dead_letter WHERE id = :letter"  # noqa: S608 - our own names
    return await tx.first(Letter, sql, letter=letter)


async def waiting_letters(
    tx: Tx,
    filters: LetterFilters,
    *,
    after: int,
    until: datetime,
    without: Collection[str],
    limit: int,
) -> list[Letter]:
    """Those above that id that were kept by then and not replayed yet, with their bodies; of some queues none."""
    where, values = _where(filters)
    sql = f"""
        SELECT {_COLUMNS}, body FROM dead_letter
         WHERE {where} AND {_WAITING} AND id > :after AND created <= :until
           AND queue <> ALL(:without::text[])
         ORDER BY id LIMIT :rows_at_most
    """  # noqa: S608 - our own names
    found: dict[str, Any] = {"after": after, "until": until, "without": sorted(without), **values}
    return await tx.all(Letter, sql, rows_at_most=limit, **found)


def _where(filters: LetterFilters) -> tuple[str, dict[str, Any]]:
    wanted = {name: getattr(filters, name) for name in _EQUAL}
    values = {name: str(value) for name, value in wanted.items() if value is not None}
    parts = [f"{name} = :{name}" for name in values]
    if filters.replayed is not None:
        parts.append("replayed_at IS NOT NULL" if filters.replayed else _WAITING)
    return " AND ".join(parts) or "true", values
