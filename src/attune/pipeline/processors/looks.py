"""Which rows there are, and whether each of them needs work now."""

from collections.abc import Collection
from typing import Final

import msgspec

from attune.store.database import Tx

_EVENTS: Final = """
    SELECT id, processed_at IS NULL AS due FROM event WHERE id = ANY(:ids::bigint[])
"""
_ENFORCEMENTS: Final = """
    SELECT id, status = 'created' AS due FROM enforcement WHERE id = ANY(:ids::bigint[])
"""
_EXECUTIONS: Final = """
    SELECT x.id, e.execution IS NOT NULL AS due
      FROM execution x LEFT JOIN entry e ON e.execution = x.id AND e.state = 'ready'
     WHERE x.id = ANY(:ids::bigint[])
"""
_ANY_EXECUTIONS: Final = "SELECT id, true AS due FROM execution WHERE id = ANY(:ids::bigint[])"
_WORKERS: Final = "SELECT id, true AS due FROM worker WHERE id = ANY(:ids::bigint[])"


class _Row(msgspec.Struct, frozen=True):
    id: int
    due: bool


async def unprocessed_events(tx: Tx, ids: Collection[int]) -> dict[int, bool]:
    return await _look(tx, _EVENTS, ids)


async def created_enforcements(tx: Tx, ids: Collection[int]) -> dict[int, bool]:
    return await _look(tx, _ENFORCEMENTS, ids)


async def ready_executions(tx: Tx, ids: Collection[int]) -> dict[int, bool]:
    """Those that have a slot and no worker. One that waits for a slot gets it from whoever frees it."""
    return await _look(tx, _EXECUTIONS, ids)


async def executions(tx: Tx, ids: Collection[int]) -> dict[int, bool]:
    """All that there are: whatever happened to one, a queue outside the database has to be told."""
    return await _look(tx, _ANY_EXECUTIONS, ids)


async def workers(tx: Tx, ids: Collection[int]) -> dict[int, bool]:
    return await _look(tx, _WORKERS, ids)


async def _look(tx: Tx, sql: str, ids: Collection[int]) -> dict[int, bool]:
    return {row.id: row.due for row in await tx.all(_Row, sql, ids=sorted(ids))}
