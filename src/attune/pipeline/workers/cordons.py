"""Whether people want a worker to be given more, kept with who said so and why."""

from datetime import datetime

from attune.identities.model import Caller
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.pipeline.workers.model import Worker
from attune.pipeline.workers.steps import cordon, uncordon
from attune.store.database import Tx


async def put_cordon(
    tx: Tx, worker: Worker, reason: str | None, caller: Caller, now: datetime
) -> None:
    """One that is cordoned already keeps who, when and why, unless there is another reason now."""
    if worker.cordoned and reason in (None, worker.cordon_reason):
        return
    await cordon(tx, worker.id, reason, caller.identity, now)
    await _told(tx, worker, WorkerEvent.CORDONED, reason, caller, now)


async def lift_cordon(
    tx: Tx, worker: Worker, reason: str | None, caller: Caller, now: datetime
) -> None:
    if worker.cordoned:
        await uncordon(tx, worker.id, now)
        await _told(tx, worker, WorkerEvent.UNCORDONED, reason, caller, now)


async def _told(
    tx: Tx, worker: Worker, event: WorkerEvent, reason: str | None, caller: Caller, now: datetime
) -> None:
    text = f"by {caller.login}: {reason}" if reason else f"by {caller.login}"
    await note(tx, [Happened(worker=worker.id, event=event, at=now, text=text)])
