"""How a worker is, and when it is asked. Pure."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from attune.pipeline.workers.model import Asked, HealthState, Probing, Worker, WorkerStatus

_PATIENCE: Final = 2  # intervals for which a question may stay unanswered


def is_stale(worker: Worker, silence: timedelta, now: datetime) -> bool:
    """Whether it has been silent for so long that it gets nothing more."""
    return worker.last_heartbeat <= now - silence


def takes_work(worker: Worker, silence: timedelta, now: datetime) -> bool:
    """Whether it may be handed something now. One that is silent or does not answer may still come back."""
    return worker.status is WorkerStatus.ACTIVE and not is_stale(worker, silence, now)


def health_of(worker: Worker, *, stale: bool, busy: bool) -> HealthState:
    if worker.cordoned:
        return HealthState.CORDONED
    if stale or worker.status is WorkerStatus.INACTIVE:
        return HealthState.OFFLINE
    if worker.status is WorkerStatus.ERROR:
        return HealthState.ERROR
    return HealthState.BUSY if busy or worker.status is WorkerStatus.BUSY else HealthState.ACTIVE


def probing(
    workers: Collection[Asked], interval: timedelta, now: datetime, *, judges: bool
) -> Probing:
    """`judges`: whether the asker has listened for long enough to hold silence against anybody.

    Who does not judge asks again: the answer, or the question, may have been lost while nobody listened.
    """
    dues = {one.id: _due_at(one, interval) for one in workers}
    ask = tuple(one for one in workers if (due := dues[one.id]) is None or due <= now)
    owing = (one for one in ask if one.asked_at and one.status is not WorkerStatus.ERROR)
    later = (due for due in dues.values() if due is not None and due > now)
    return Probing(ask, tuple(owing) if judges else (), min([now + interval, *later]))


def _due_at(worker: Asked, interval: timedelta) -> datetime | None:
    """When the next question is due, or when patience with the last one ends; None for one never asked."""
    if worker.asked_at is None:
        return None if worker.answered_at is None else worker.answered_at + interval
    given_up = worker.status is WorkerStatus.ERROR
    return worker.asked_at + interval * (1 if given_up else _PATIENCE)
