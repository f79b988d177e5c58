"""A worker's heartbeat in its row: it lives, it leaves, it was lost, it is back."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.kernel.errors import Conflict
from attune.kernel.ids import WorkerId
from attune.pipeline.workers.history import ALERTS, Happened, WorkerEvent, note
from attune.pipeline.workers.model import WorkerStatus
from attune.store.database import Tx

_BEATING: Final = """
    SELECT status, last_heartbeat FROM worker
     WHERE id = :id AND incarnation = :incarnation FOR UPDATE
"""
_BEAT: Final = "UPDATE worker SET last_heartbeat = :now WHERE id = :id"
_STATUS: Final = (
    "UPDATE worker SET status = :status, asked_at = NULL, updated = :now WHERE id = :id"
)
_SILENT: Final = """
    SELECT id FROM worker WHERE status <> 'inactive' AND last_heartbeat <= :since ORDER BY id
"""
_STILL_SILENT: Final = """
    SELECT status, last_heartbeat FROM worker
     WHERE id = :id AND status <> 'inactive' AND last_heartbeat <= :since FOR UPDATE
"""
_OLDEST_BEAT: Final = "SELECT min(last_heartbeat) FROM worker WHERE status <> 'inactive'"


class NameTaken(Conflict):
    """Another process has registered under this worker's name, and has it now: the earlier one must stop."""

    code = "worker_name_taken"


class _Beating(msgspec.Struct, frozen=True):
    status: WorkerStatus
    last_heartbeat: datetime


async def beat(
    tx: Tx, worker: WorkerId, incarnation: str, now: datetime, *, leaving: bool = False
) -> timedelta | None:
    """For how long it had been silent, if it was given up for lost meanwhile: then it counts as active again.

    `leaving`: it beats on, so that nobody takes away what it finishes, and counts as inactive.
    """
    before = await _own(tx, worker, incarnation)
    await tx.execute(_BEAT, id=worker, now=now)
    is_active = before.status is not WorkerStatus.INACTIVE
    if leaving or is_active:
        if leaving and is_active:
            await tx.execute(_STATUS, id=worker, status=WorkerStatus.INACTIVE, now=now)
        return None
    silence = now - before.last_heartbeat
    await tx.execute(_STATUS, id=worker, status=WorkerStatus.ACTIVE, now=now)
    await note(tx, [_silence(worker, WorkerEvent.BACK, silence, now)])
    return silence


async def sign_off(
    tx: Tx, worker: WorkerId, incarnation: str, text: str | None, now: datetime
) -> None:
    """Its last word. `text` tells what it could not finish."""
    await _own(tx, worker, incarnation)
    await tx.execute(_STATUS, id=worker, status=WorkerStatus.INACTIVE, now=now)
    await note(tx, [Happened(worker=worker, event=WorkerEvent.STOPPED, at=now, text=text)])


async def silent_workers(tx: Tx, since: datetime) -> list[WorkerId]:
    """Those that should be there and have not been heard of since then."""
    return await tx.all(WorkerId, _SILENT, since=since)


async def oldest_beat(tx: Tx) -> datetime | None:
    """Of those that should be there."""
    return await tx.first(datetime, _OLDEST_BEAT)


async def mark_lost(tx: Tx, worker: WorkerId, since: datetime, now: datetime) -> timedelta | None:
    """For how long it has been silent; None if it has beaten since then, or has left."""
    found = await tx.first(_Beating, _STILL_SILENT, id=worker, since=since)
    if found is None:
        return None
    silence = now - found.last_heartbeat
    await tx.execute(_STATUS, id=worker, status=WorkerStatus.INACTIVE, now=now)
    await note(tx, [_silence(worker, WorkerEvent.LOST, silence, now)])
    tx.wake(ALERTS)
    return silence


async def _own(tx: Tx, worker: WorkerId, incarnation: str) -> _Beating:
    """The row, locked, while it is this process's own."""
    found = await tx.first(_Beating, _BEATING, id=worker, incarnation=incarnation)
    if found is None:
        raise NameTaken(
            "Another worker of the same name has come; worker.name must be unique.", worker=worker
        )
    return found


def _silence(worker: WorkerId, event: WorkerEvent, silence: timedelta, now: datetime) -> Happened:
    return Happened(worker=worker, event=event, at=now, downtime_seconds=silence.total_seconds())
