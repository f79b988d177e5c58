"""The families of /metrics that tell of workers and attempts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from attune.catalog.retrying import Cause
from attune.kernel.clock import Clock
from attune.kernel.statuses import TERMINAL
from attune.pipeline.alerts.model import Readings
from attune.pipeline.alerts.steps import readings
from attune.pipeline.completion.measures import AttemptCounts
from attune.pipeline.completion.overdue import Monitor
from attune.pipeline.workers.history import Happened, WorkerEvent
from attune.pipeline.workers.measures import WorkerCounts, WorkerNews, worker_counts
from attune.store.database import Database, Tx
from attune.telemetry.metrics import Family, Histogram, Kind, Point, gauge

W = TypeVar("W", bound=StrEnum)

_DOWNTIME_BOUNDS: Final = (1, 5, 10, 30, 45, 60, 120, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600)
_SILENCES: Final = (WorkerEvent.LOST, WorkerEvent.BACK)
_DELAYED: Final = "SELECT count(*) FROM delay"


class _Now(msgspec.Struct, frozen=True):
    readings: Readings
    workers: WorkerCounts
    delayed: int


class WorkerMetrics:
    """Keeps what was seen since it was made. `stale` is the silence after which a worker counts as gone."""

    def __init__(self, database: Database, clock: Clock, stale: timedelta) -> None:
        self._database = database
        self._clock = clock
        self._stale = stale
        self._news = WorkerNews(database, clock)
        self._attempts = AttemptCounts(database, clock)
        self._events: Counter[WorkerEvent] = Counter()
        self._downtimes = {event: Histogram(_DOWNTIME_BOUNDS) for event in _SILENCES}

    async def families(self) -> list[Family]:
        self._tell(await self._news.look())
        await self._attempts.look()
        now = await self._database.read(self._now)
        return [*_present(now), *self._since_start()]

    async def _now(self, tx: Tx) -> _Now:
        now = self._clock.now()
        return _Now(
            await readings(tx, self._stale, now),
            await worker_counts(tx, self._stale, now),
            await tx.one(int, _DELAYED),
        )

    def _tell(self, happened: Iterable[Happened]) -> None:
        rows = tuple(happened)
        self._attempts.tell(rows)
        for one in rows:
            self._events[one.event] += 1
            if one.event in self._downtimes and one.downtime_seconds is not None:
                self._downtimes[one.event].observe(one.downtime_seconds)

    def _since_start(self) -> Iterator[Family]:
        attempts = self._attempts
        yield _by_label(
            "execution_timeouts",
            "Attempts that were ended because no worker began or ended them in time, by who found it out.",
            "monitor",
            {monitor: attempts.timeouts[monitor] for monitor in Monitor},
        )
        yield _by_label(
            "executions_ended_total",
            "Executions that ended, by their status.",
            "status",
            {status: attempts.ended[status] for status in sorted(TERMINAL)},
        )
        yield _by_label(
            "execution_retries_total",
            "Attempts that were followed by another, by why they came to no good end.",
            "cause",
            {cause: attempts.retries[cause] for cause in Cause},
        )
        yield Family(
            "execution_duration_seconds",
            Kind.HISTOGRAM,
            "Seconds that executions ran, those of their last attempt.",
            tuple(attempts.durations.points({})),
        )
        yield from self._of_workers()

    def _of_workers(self) -> Iterator[Family]:
        yield _by_label(
            "worker_events_total",
            "What became of workers and of executions on them.",
            "event",
            {event: self._events[event] for event in WorkerEvent},
        )
        yield Family(
            "worker_downtime_seconds",
            Kind.HISTOGRAM,
            "Seconds since a worker's last heartbeat when it was given up as lost, and when it came back.",
            tuple(
                point
                for event, histogram in self._downtimes.items()
                for point in histogram.points({"until": event.value})
            ),
        )


def _present(now: _Now) -> Iterator[Family]:
    workers = now.workers
    yield gauge(
        "active_workers", "Workers that may be given work now.", now.readings.active_workers
    )
    yield _by_label(
        "workers", "Workers, by how they are.", "state", workers.states, kind=Kind.GAUGE
    )
    yield gauge(
        "worker_capacity", "Executions that the active workers can have at once.", workers.capacity
    )
    yield gauge(
        "worker_utilization_ratio",
        "Share of the active workers' capacity that is in use, of 1.",
        workers.utilization,
    )
    yield gauge(
        "dlq_depth",
        "Dead letters that were neither replayed nor deleted.",
        now.readings.dead_letters,
    )
    yield gauge(
        "scheduled_executions_older_than_5min",
        "Executions that a worker was handed more than five minutes ago and has not begun.",
        now.readings.stale_executions,
    )
    yield gauge("executions_delayed", "Executions that rest between two attempts.", now.delayed)


def _by_label(
    name: str,
    description: str,
    label: str,
    values: Mapping[W, int],
    kind: Kind = Kind.COUNTER,
) -> Family:
    """All words are there from the start: what appears late has no rate."""
    points = tuple(Point(value, {label: word.value}) for word, value in values.items())
    return Family(name, kind, description, points)
