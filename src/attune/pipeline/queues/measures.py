"""The queues in numbers, for those who watch them over time.

`queue_counts` is read from lanes and entries alone: the same in every process and after every restart. Waiting times
are seen as they end: `WaitTimes` keeps what one process has seen since it began, and reads on where it stopped.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.kernel.clock import Clock
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.decisions import Item
from attune.pipeline.queues.outcomes import released
from attune.store.database import Database, Tx
from attune.telemetry.metrics import Histogram

# Up to the hour after which, by default, a wait ends as a timeout.
BOUNDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    *(60, 150, 300, 600, 1800, 3600),
)
_FAR_BACK: Final = 5000
_SKEW: Final = timedelta(minutes=5)
_COUNTS: Final = """
    SELECT coalesce(sum(queue_length), 0)::bigint AS queued,
           coalesce(sum(active_count), 0)::bigint AS holding,
           coalesce(sum(total_enqueued), 0)::bigint AS enqueued,
           (SELECT count(*) FROM entry WHERE state = 'handed') AS handed,
           (SELECT count(*) FROM entry WHERE state <> 'handed' AND attempt > 1) AS again
      FROM lane
"""
_CHANGED: Final = "SELECT id, next_decision FROM lane WHERE updated >= :since"
_DECISIONS: Final = """
    SELECT d.items FROM ROWS(:wanted AS w(lane bigint, number bigint))
      JOIN decision d ON d.lane = w.lane AND d.number >= w.number
     WHERE d.at >= :since
"""
_ENDED: Final = """
    SELECT id, priority, created, started_at FROM execution
     WHERE id = ANY(:ids::bigint[]) AND attempt = 1 AND started_at IS NOT NULL
"""
_RUNNING: Final = """
    SELECT x.id, x.priority, x.created, x.started_at
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed' AND x.attempt = 1 AND x.started_at IS NOT NULL
"""


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """`depth` wait for a slot or a worker, `active` are with a worker, `enqueued` were ever accepted.

    `scheduled` have ever left the queue, for a worker or because they ended in it. One that was taken back from a
    lost worker stands in line again and does not count twice, so the number never falls.
    """

    depth: int
    active: int
    enqueued: int
    scheduled: int


class _Counts(msgspec.Struct, frozen=True):
    queued: int
    holding: int
    enqueued: int
    handed: int
    again: int


class _Changed(msgspec.Struct, frozen=True):
    id: LaneId
    next_decision: int


class _Decision(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]


class Wait(msgspec.Struct, frozen=True):
    """From the request to the start, of an execution that had one attempt: a later start tells nothing of the queue."""

    id: ExecutionId
    priority: Priority
    created: datetime
    started_at: datetime

    @property
    def seconds(self) -> float:
        return max((self.started_at - self.created).total_seconds(), 0.0)


class _News(msgspec.Struct, frozen=True):
    """What began since the last look: of those that run, and of those that have ended meanwhile."""

    cursors: dict[LaneId, int]
    running: list[Wait]
    ended: list[Wait]


async def queue_counts(tx: Tx) -> QueueCounts:
    found = await tx.one(_Counts, _COUNTS)
    depth = found.queued + found.holding - found.handed
    return QueueCounts(
        depth=depth,
        active=found.handed,
        enqueued=found.enqueued,
        scheduled=found.enqueued - depth + found.again,
    )


class WaitTimes:
    """How long executions waited before they started, by priority, since this was made.

    A start is seen while it runs, or by its end in the log of decisions; the few that run are remembered, so each
    is counted once. Of a lane in which thousands of transactions passed between two looks, only the latest count.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._began = clock.now()
        self._looked = self._began
        self._cursors: dict[LaneId, int] = {}
        self._running: frozenset[ExecutionId] = frozenset()
        self._looking = asyncio.Lock()
        self.histograms = {priority: Histogram(BOUNDS) for priority in Priority}

    async def look(self) -> None:
        """Count what began since the last look."""
        async with self._looking:
            now = self._clock.now()
            news = await self._database.read(
                _news, self._cursors, self._looked - _SKEW, self._began
            )
            waits = {wait.id: wait for wait in (*news.running, *news.ended)}
            for wait in waits.values():
                if wait.id not in self._running and wait.started_at >= self._began:
                    self.histograms[wait.priority].observe(wait.seconds)
            self._running = frozenset(wait.id for wait in news.running)
            self._cursors.update(news.cursors)
            self._looked = now


async def _news(tx: Tx, known: Mapping[LaneId, int], since: datetime, began: datetime) -> _News:
    changed = await tx.all(_Changed, _CHANGED, since=since)
    cursors = {lane.id: lane.next_decision for lane in changed}
    wanted = [
        (lane, max(known.get(lane, 1), number - _FAR_BACK))
        for lane, number in cursors.items()
        if number > known.get(lane, 1)
    ]
    rows = await tx.all(_Decision, _DECISIONS, wanted=wanted, since=began - _SKEW) if wanted else []
    ids = sorted(each for row in rows for each in released(row.items))
    ended = await tx.all(Wait, _ENDED, ids=ids) if ids else []
    return _News(cursors, await tx.all(Wait, _RUNNING), ended)
