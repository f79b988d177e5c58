"""The workers in numbers, for those who watch them over time.

`worker_counts` is read from the rows that are there now. What happens to workers is counted as it happens: rows of
their history are removed one day, and a counter must not fall.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.identities.row_conditions import ALWAYS
from attune.kernel.clock import Clock
from attune.pipeline.workers.history import Happened, WorkerEvent
from attune.pipeline.workers.model import HealthState
from attune.pipeline.workers.queries import WorkerFilters, list_workers
from attune.store.database import Database, Tx

_AT_WORK: Final = (HealthState.ACTIVE, HealthState.BUSY)
_SKEW: Final = timedelta(minutes=5)
_SINCE: Final = """
    SELECT id, worker, event, at, execution, downtime_seconds, text FROM worker_history
     WHERE event = ANY(:events::text[]) AND at >= :since ORDER BY id
"""


class WorkerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """`capacity` is that of the workers that may be given work, `load` how many executions those have."""

    states: Mapping[HealthState, int]
    capacity: int
    load: int

    @property
    def utilization(self) -> float:
        """Of 1. Without workers nothing is used."""
        return self.load / self.capacity if self.capacity else 0.0


class _Row(Happened, frozen=True, kw_only=True):
    id: int


async def worker_counts(tx: Tx, stale: timedelta, now: datetime) -> WorkerCounts:
    """`stale` is the silence after which a worker counts as gone."""
    seen = await list_workers(tx, WorkerFilters(), ALWAYS, stale, now)
    found = Counter(one.health_state for one in seen)
    working = [one for one in seen if one.health_state in _AT_WORK]
    return WorkerCounts(
        states={state: found[state] for state in HealthState},
        capacity=sum(one.worker.capacity for one in working),
        load=sum(sum(one.load.values()) for one in working),
    )


class WorkerNews:
    """What happened to workers since this was made, each thing once.

    A transaction may commit a while after the time that it wrote, so each look goes back a little and leaves out what
    was seen.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._began = self._looked = clock.now()
        self._seen: frozenset[int] = frozenset()
        self._looking = asyncio.Lock()

    async def look(self) -> list[Happened]:
        async with self._looking:
            now = self._clock.now()
            since = max(self._began, self._looked - _SKEW)
            rows = await self._database.read(_happened, since)
            new: list[Happened] = [row for row in rows if row.id not in self._seen]
            self._seen = frozenset(row.id for row in rows)
            self._looked = now
            return new


async def _happened(tx: Tx, since: datetime) -> list[_Row]:
    return await tx.all(_Row, _SINCE, events=tuple(WorkerEvent), since=since)
