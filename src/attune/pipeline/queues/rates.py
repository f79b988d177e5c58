"""Starts under a rate limit, one row for each attempt, counted from the admission until their window is over.

The row is there before the execution begins, without a time, and counts as if it began now; the time is written when
the start is told. So no window of start times ever holds more than its maximum.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId, PoolId
from attune.pipeline.policies.gates import Starts
from attune.pipeline.policies.model import Rate
from attune.store.database import Tx

GATES: Final = "gates"

_COUNTED: Final = "SELECT at FROM admission WHERE pool = :pool AND (at IS NULL OR at > :since)"
_PAST: Final = "DELETE FROM admission WHERE pool = :pool AND at <= :since"
# Of an attempt that holds no slot: it has ended, rests before the next, or waits again.
_OVER: Final = """
    pool = :pool AND at IS NULL
    AND NOT EXISTS (SELECT 1 FROM entry e
                     WHERE e.execution = admission.execution AND e.attempt = admission.attempt
                       AND e.state <> 'queued')
"""
# The condition in these statements is our own text. A lost attempt may have begun, so for a rate it did.
_TELL_ENDED: Final = f"""
    UPDATE admission SET at = coalesce(
           (SELECT x.started_at FROM execution x
             WHERE x.id = admission.execution AND x.attempt = admission.attempt),
           (SELECT CASE WHEN a.cause = 'worker_lost' THEN coalesce(a.started_at, a.ended_at)
                        ELSE a.started_at END
              FROM execution_attempt a
             WHERE a.execution = admission.execution AND a.attempt = admission.attempt))
     WHERE {_OVER}
"""  # noqa: S608
_DROP_ENDED: Final = f"DELETE FROM admission WHERE {_OVER}"  # noqa: S608
_ADOPT: Final = """
    INSERT INTO admission (execution, attempt, pool, at)
    SELECT e.execution, e.attempt, :pool, x.started_at
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.lane = ANY(:lanes::bigint[]) AND e.state <> 'queued'
    ON CONFLICT (execution, attempt) DO UPDATE SET pool = excluded.pool
"""
_ADMIT: Final = """
    INSERT INTO admission (execution, attempt, pool)
    SELECT e.execution, e.attempt, :pool FROM entry e WHERE e.execution = ANY(:ids::bigint[])
    ON CONFLICT (execution, attempt) DO NOTHING
"""
# What is told twice, running and at the end, counts as it was told first.
_BEGAN: Final = """
    UPDATE admission SET at = v.at FROM ROWS(:began AS v(execution bigint, at timestamptz))
     WHERE admission.execution = v.execution AND admission.at IS NULL
"""
_NEVER: Final = "DELETE FROM admission WHERE execution = ANY(:ids::bigint[]) AND at IS NULL"


class _Row(msgspec.Struct, frozen=True):
    at: datetime | None


async def counted(tx: Tx, pool: PoolId, rate: Rate, now: datetime) -> Starts:
    """The starts that the rate counts now."""
    since = now - timedelta(seconds=rate.window_seconds)
    rows = await tx.all(_Row, _COUNTED, pool=pool, since=since)
    times = tuple(sorted(row.at for row in rows if row.at is not None))
    return Starts(times, len(rows) - len(times))


class Rates:
    """What one transaction knows of the starts in pools that it holds."""

    def __init__(self, tx: Tx, now: datetime) -> None:
        self._tx = tx
        self._now = now
        self.known: dict[PoolId, Starts] = {}

    async def load(self, pool: PoolId, rate: Rate) -> None:
        if pool in self.known:
            return
        since = self._now - timedelta(seconds=rate.window_seconds)
        await self._tx.execute(_PAST, pool=pool, since=since)
        self.known[pool] = await counted(self._tx, pool, rate, self._now)

    async def adopt(self, pool: PoolId, lanes: Collection[LaneId]) -> None:
        """A rate binds these lanes from now on: whoever holds a slot counts, and who ended meanwhile is told of."""
        await self._tx.execute(_TELL_ENDED, pool=pool)
        await self._tx.execute(_DROP_ENDED, pool=pool)
        await self._tx.execute(_ADOPT, pool=pool, lanes=sorted(lanes))
        self.known.pop(pool, None)

    async def admit(self, pool: PoolId, executions: Collection[ExecutionId]) -> None:
        await self._tx.execute(_ADMIT, pool=pool, ids=sorted(executions))
        known = self.known.get(pool, Starts())
        self.known[pool] = Starts(known.times, known.pending + len(executions))

    async def ended(self, started: Mapping[ExecutionId, datetime | None]) -> None:
        """When each of these began; one that never did gives its place back."""
        await tell_starts(self._tx, {one: at for one, at in started.items() if at is not None})
        never = sorted(one for one, at in started.items() if at is None)
        if never:
            await self._tx.execute(_NEVER, ids=never)
        self.known.clear()


async def tell_starts(tx: Tx, began: Mapping[ExecutionId, datetime]) -> None:
    """Write when executions began. Whoever waits for a rate may learn from it when the gate opens."""
    if began and await tx.execute(_BEGAN, began=sorted(began.items())):
        tx.wake(GATES)
