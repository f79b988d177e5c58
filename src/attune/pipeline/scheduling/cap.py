"""The cap of the whole system, max_concurrent_executions: how many executions workers may have at once.

Unset, the workers' capacity is the cap and nothing is locked. Set, its row is the lock under which executions are
handed over, and what is handed over is counted from the rows and logged.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from attune.kernel.ids import LaneId
from attune.pipeline.queues.decisions import SYSTEM, Handed
from attune.pipeline.scheduling.model import Assignment
from attune.store import schema
from attune.store.database import Tx

_LOCK: Final = """
    SELECT CAST(value AS bigint) FROM setting WHERE name = 'max_concurrent_executions' FOR UPDATE
"""
_HANDED: Final = "SELECT count(*) FROM entry WHERE state = 'handed'"
_LAST: Final = "SELECT coalesce(max(number), 0) FROM decision WHERE lane = 0"


class Cap(msgspec.Struct, frozen=True):
    limit: int
    active: int

    @property
    def free(self) -> int:
        return max(self.limit - self.active, 0)


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    lane: LaneId = SYSTEM
    number: int
    at: datetime
    active_before: int
    active_after: int
    queue_length: int = 0
    max_concurrent: int
    reason: str | None = None
    items: Any


async def lock_cap(tx: Tx) -> Cap | None:
    """Null when it was taken away meanwhile."""
    limit = await tx.first(int, _LOCK)
    return None if limit is None else Cap(limit, await tx.one(int, _HANDED))


async def log_hand_offs(
    tx: Tx, cap: Cap, assigned: Sequence[Assignment], now: datetime, *, aged: bool
) -> None:
    """`aged` tells that waiting counts for more than bands."""
    if not assigned:
        return
    items = [
        Handed(one.entry.execution, one.entry.band, one.entry.lane, one.worker) for one in assigned
    ]
    row = _Row(
        number=await tx.one(int, _LAST) + 1,
        at=now,
        active_before=cap.active,
        active_after=cap.active + len(items),
        max_concurrent=cap.limit,
        reason="ageing" if aged else None,
        items=items,
    )
    await tx.insert(schema.decision, [row])
