"""Starts under a rate limit, one row each, counted from the admission until their window is over.

The row is there before the execution begins, without a time, and counts as if it began now; the time is written when
the start is told. So no window of start times ever holds more than its maximum.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, PoolId
from attune.pipeline.policies.gates import Starts
from attune.pipeline.policies.model import Rate
from attune.store import schema
from attune.store.database import Tx

GATES: Final = "gates"

_COUNTED: Final = """
    SELECT at FROM admission WHERE pool = :pool AND (at IS NULL OR at > :since) ORDER BY at
"""
_PAST: Final = "DELETE FROM admission WHERE pool = :pool AND at <= :since"
_BEGAN: Final = """
    UPDATE admission SET at = v.at FROM ROWS(:began AS v(execution bigint, at timestamptz))
     WHERE admission.execution = v.execution
"""
_NEVER: Final = "DELETE FROM admission WHERE execution = ANY(:ids::bigint[]) AND at IS NULL"


class _Row(msgspec.Struct, frozen=True):
    at: datetime | None


class _Admission(msgspec.Struct, frozen=True):
    execution: ExecutionId
    pool: PoolId
    at: datetime | None = None


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
        rows = await self._tx.all(_Row, _COUNTED, pool=pool, since=since)
        times = tuple(sorted(row.at for row in rows if row.at is not None))
        self.known[pool] = Starts(times, len(rows) - len(times))

    async def admit(self, pool: PoolId, executions: Collection[ExecutionId]) -> None:
        """One that was taken back from a worker has its row already."""
        rows = [_Admission(one, pool) for one in executions]
        await self._tx.insert(schema.admission, rows, skip_existing=True)
        known = self.known.get(pool, Starts())
        self.known[pool] = Starts(known.times, known.pending + len(rows))

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
