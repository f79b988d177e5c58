"""What ended in a lane, and how it ran. Found by the numbers of the lane's decisions.

Executions are not searched by their action: those that wait come after those that ran, and there may be a million of
them. The log knows each end, in its order, and only that much of it is read as is new.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.decisions import Item, Left
from attune.store.database import Tx

_ROWS: Final = 200
_MOST: Final = 500
_RECENT: Final = 200
_DECISIONS: Final = """
    SELECT number, reason, items FROM decision
     WHERE lane = :lane AND number > :after ORDER BY number DESC LIMIT :most
"""
_RUNS: Final = """
    SELECT id, status, priority, attempt, created, started_at, updated AS ended_at
      FROM execution WHERE id = ANY(:ids::bigint[]) AND started_at IS NOT NULL
"""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """An execution that ran and has ended. Its times are those of the last attempt."""

    id: ExecutionId
    status: ExecutionStatus
    priority: Priority
    attempt: int
    created: datetime
    started_at: datetime
    ended_at: datetime

    @property
    def seconds(self) -> float:
        """Never below 0, whatever the clocks of worker and executor say."""
        return max((self.ended_at - self.started_at).total_seconds(), 0.0)


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """`last` is the number of the last decision that was looked at, `waited` whether most ends left work waiting
    for a slot of the lane."""

    last: int
    waited: bool
    runs: tuple[Run, ...]


class _Decision(msgspec.Struct, frozen=True):
    number: int
    reason: str | None
    items: tuple[Item, ...]


async def ends_after(tx: Tx, lane: LaneId, after: int) -> Ends:
    """What ended after this decision; of much, the latest."""
    found = await tx.all(_Decision, _DECISIONS, lane=lane, after=after, most=_ROWS)
    rows = [(row, released(row.items)) for row in found]
    freeing = [row for row, ids in rows if ids]
    short = sum(row.reason == GateName.CONCURRENCY for row in freeing)
    ids = [each for _, some in rows for each in reversed(some)]
    return Ends(
        last=found[0].number if found else after,
        waited=2 * short > len(freeing),
        runs=tuple(await runs_of(tx, ids[:_MOST])),
    )


async def recent_durations(tx: Tx, lane: LaneId) -> list[float]:
    """Seconds that the last executions of the lane ran, at most 200: what an estimate is made from."""
    found = await tx.all(_Decision, _DECISIONS, lane=lane, after=0, most=_ROWS)
    ids = [each for row in found for each in reversed(released(row.items))]
    runs = await runs_of(tx, ids[:_RECENT])
    return [one.seconds for one in runs if one.status is not ExecutionStatus.CANCELLED]


def released(items: Collection[Item]) -> list[ExecutionId]:
    """Those that held a slot and ended."""
    return [item.execution for item in items if isinstance(item, Left) and item.held]


async def runs_of(tx: Tx, ids: Collection[ExecutionId]) -> list[Run]:
    return await tx.all(Run, _RUNS, ids=sorted(ids)) if ids else []
