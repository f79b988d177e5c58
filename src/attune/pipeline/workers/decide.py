"""How a worker is. Pure."""

from datetime import datetime, timedelta

from attune.pipeline.workers.model import HealthState, Worker, WorkerStatus


def is_stale(worker: Worker, silence: timedelta, now: datetime) -> bool:
    """Whether it has been silent for so long that it gets nothing more."""
    return worker.last_heartbeat <= now - silence


def health_of(worker: Worker, *, stale: bool, busy: bool) -> HealthState:
    if worker.cordoned:
        return HealthState.CORDONED
    if stale or worker.status is WorkerStatus.INACTIVE:
        return HealthState.OFFLINE
    if worker.status is WorkerStatus.ERROR:
        return HealthState.ERROR
    return HealthState.BUSY if busy or worker.status is WorkerStatus.BUSY else HealthState.ACTIVE
