"""Attempts and ends in numbers, for those who watch them over time.

They are seen as they come: ends in the log of decisions, retries by the attempts on record. Nothing is searched in
the table of executions, and what one process has seen since it began never falls.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.catalog.retrying import Cause
from attune.kernel.clock import Clock
from attune.kernel.ids import ExecutionId, LaneId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.completion.overdue import Monitor
from attune.pipeline.queues.decisions import Delayed, Dropped, Item, Left, Refused
from attune.pipeline.workers.history import Happened, WorkerEvent
from attune.store.database import Database, Tx
from attune.telemetry.metrics import Histogram

# Up to a day: an action may run for as long as it likes.
BOUNDS: Final = (
    *(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600),
    *(4 * 3600, 12 * 3600, 24 * 3600),
)
_FAR_BACK: Final = 5000
_SKEW: Final = timedelta(minutes=5)
_EXPIRED: Final = "Message expired"
_CHANGED: Final = "SELECT id, next_decision FROM lane WHERE updated >= :since"
_DECISIONS: Final = """
    SELECT d.items FROM ROWS(:wanted AS w(lane bigint, number bigint))
      JOIN decision d ON d.lane = w.lane AND d.number >= w.number
     WHERE d.at >= :since
"""
_TRIED_AGAIN: Final = "SELECT execution FROM entry WHERE attempt > 1"
_ENDED: Final = """
    SELECT id, status, attempt, started_at, updated AS ended_at FROM execution
     WHERE id = ANY(:ids::bigint[]) AND status = ANY(:statuses::text[])
"""
_ATTEMPTS: Final = """
    SELECT a.execution, a.attempt, a.cause FROM ROWS(:wanted AS w(id bigint, attempt int))
      JOIN execution_attempt a ON a.execution = w.id AND a.attempt > w.attempt
     WHERE a.ended_at >= :since
"""


class _Changed(msgspec.Struct, frozen=True):
    id: LaneId
    next_decision: int


class _Decision(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]


class _End(msgspec.Struct, frozen=True, kw_only=True):
    id: ExecutionId
    status: ExecutionStatus
    attempt: int
    started_at: datetime | None
    ended_at: datetime


class _Attempt(msgspec.Struct, frozen=True):
    execution: ExecutionId
    attempt: int
    cause: Cause


class _News(msgspec.Struct, frozen=True):
    """`trying` have not ended, as far as is known, and had an attempt before."""

    cursors: dict[LaneId, int]
    trying: frozenset[ExecutionId]
    ended: list[_End]
    attempts: list[_Attempt]


class AttemptCounts:
    """How executions ended, and how often they were tried again, since this was made.

    `retries` counts attempts that were followed by another, by why. Of a lane in which thousands of transactions
    passed between two looks, only the latest count.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._began = self._looked = clock.now()
        self._cursors: dict[LaneId, int] = {}
        self._counted: dict[ExecutionId, int] = {}
        self._looking = asyncio.Lock()
        self.ended: Counter[ExecutionStatus] = Counter()
        self.retries: Counter[Cause] = Counter()
        self.timeouts: Counter[Monitor] = Counter()
        self.durations = Histogram(BOUNDS)

    async def look(self) -> None:
        """Count what came since the last look."""
        async with self._looking:
            now = self._clock.now()
            news = await self._database.read(
                _news, self._cursors, self._counted, self._looked - _SKEW, self._began
            )
            self._count(news)
            self._cursors.update(news.cursors)
            self._looked = now

    def tell(self, happened: Iterable[Happened]) -> None:
        """Of what happened to workers, that which ended attempts."""
        self.timeouts.update(
            monitor for one in happened if (monitor := monitor_of(one)) is not None
        )

    def _count(self, news: _News) -> None:
        for one in news.attempts:
            self.retries[one.cause] += 1
            self._counted[one.execution] = max(self._counted.get(one.execution, 0), one.attempt)
        for new in news.trying:
            self._counted.setdefault(new, 0)
        for end in news.ended:
            self._counted.pop(end.id, None)
            if end.ended_at < self._began:
                continue
            self.ended[end.status] += 1
            if end.started_at is not None:
                self.durations.observe(max((end.ended_at - end.started_at).total_seconds(), 0.0))


def monitor_of(happened: Happened) -> Monitor | None:
    """Who ended an attempt in the worker's place. Two of them do so for the same reason, and differ in their words."""
    match happened.event:
        case WorkerEvent.OVERDUE:
            return Monitor.RUN_DEADLINE
        case WorkerEvent.NOT_STARTED:
            expired = (happened.text or "").startswith(_EXPIRED)
            return Monitor.DEAD_LETTERS if expired else Monitor.SCHEDULED_TIMEOUT
        case _:
            return None


async def _news(
    tx: Tx,
    known: Mapping[LaneId, int],
    counted: Mapping[ExecutionId, int],
    since: datetime,
    began: datetime,
) -> _News:
    """One that was tried again is asked for until its end is seen, whatever part of the log was passed over."""
    cursors, items = await _decided(tx, known, since, began - _SKEW)
    left = {e for item in items if (e := _left(item)) is not None}
    trying = {item.execution for item in items if isinstance(item, Delayed)}
    trying |= set(await tx.all(ExecutionId, _TRIED_AGAIN))
    maybe = sorted(left | trying | counted.keys())
    statuses = sorted(TERMINAL)
    ended = await tx.all(_End, _ENDED, ids=maybe, statuses=statuses) if maybe else []
    tried = trying | counted.keys() | {one.id for one in ended if one.attempt > 1}
    wanted = [(one, counted.get(one, 0)) for one in sorted(tried)]
    attempts = await tx.all(_Attempt, _ATTEMPTS, wanted=wanted, since=began) if wanted else []
    return _News(cursors, frozenset(trying - {one.id for one in ended}), ended, attempts)


async def _decided(
    tx: Tx, known: Mapping[LaneId, int], since: datetime, began: datetime
) -> tuple[dict[LaneId, int], list[Item]]:
    changed = await tx.all(_Changed, _CHANGED, since=since)
    cursors = {lane.id: lane.next_decision for lane in changed}
    wanted = [
        (lane, max(known.get(lane, 1), number - _FAR_BACK))
        for lane, number in cursors.items()
        if number > known.get(lane, 1)
    ]
    rows = await tx.all(_Decision, _DECISIONS, wanted=wanted, since=began) if wanted else []
    return cursors, [item for row in rows for item in row.items]


def _left(item: Item) -> ExecutionId | None:
    """One that may have ended: it left its lane, was turned away from it, or rested."""
    return item.execution if isinstance(item, Left | Refused | Dropped) else None
