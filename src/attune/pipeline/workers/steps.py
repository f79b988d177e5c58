"""A worker's coming, its cordon, and whom others may give work."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.errors import NotFound
from attune.kernel.ids import IdentityId, WorkerId
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.pipeline.workers.model import Registration, Worker, WorkerStatus
from attune.store import schema
from attune.store.database import Tx
from attune.store.values import Json

_COLUMNS = ", ".join(Worker.__struct_fields__)
# The names in these statements are those of our own structs.
_BY_NAME: Final = f"SELECT {_COLUMNS} FROM worker WHERE name = :name FOR UPDATE"  # noqa: S608
_BY_ID: Final = f"SELECT {_COLUMNS} FROM worker WHERE id = :id"  # noqa: S608
_PRESENT: Final = f"""
    SELECT {_COLUMNS} FROM worker WHERE status IN ('active', 'error') AND NOT cordoned
"""  # noqa: S608
_TOTAL: Final = """
    SELECT count(*) AS total FROM worker WHERE status IN ('active', 'error') AND NOT cordoned
"""
_AGAIN: Final = """
    UPDATE worker SET status = 'active', worker_type = :worker_type, host = :host, port = :port,
           capacity = :capacity, supported_runtimes = :runtimes, labels = :labels, taints = :taints,
           incarnation = :incarnation, last_heartbeat = :now, asked_at = NULL, answered_at = NULL,
           updated = :now
     WHERE id = :id
"""
_CORDON: Final = """
    UPDATE worker SET cordoned = :cordoned, cordon_reason = :reason, cordoned_by = :by,
           cordoned_at = :at, updated = :now
     WHERE id = :id
"""
_LOADS: Final = """
    SELECT worker, count(*) AS load FROM entry
     WHERE state = 'handed' AND worker = ANY(:ids::bigint[]) GROUP BY worker
"""


class _Total(msgspec.Struct, frozen=True):
    total: int


class _Load(msgspec.Struct, frozen=True):
    worker: WorkerId
    load: int


async def register(tx: Tx, coming: Registration, now: datetime) -> Worker:
    """The row of that name, now this worker's; whoever had it before finds another incarnation there."""
    known = await tx.first(Worker, _BY_NAME, name=coming.name)
    if known is None:
        [new] = await tx.next_ids(schema.worker)
        known = _first_row(WorkerId(new), coming, now)
        if await tx.insert(schema.worker, [known], skip_existing=True):
            await note(tx, [_registered(known, now)])
            return known
        known = await tx.one(Worker, _BY_NAME, name=coming.name)
    await tx.execute(
        _AGAIN,
        id=known.id,
        worker_type=coming.worker_type,
        host=coming.host,
        port=coming.port,
        capacity=coming.capacity,
        runtimes=Json(coming.supported_runtimes),
        labels=Json(coming.labels),
        taints=Json(coming.taints),
        incarnation=coming.incarnation,
        now=now,
    )
    await note(tx, [_registered(known, now)])
    return await tx.one(Worker, _BY_ID, id=known.id)


async def cordon(
    tx: Tx, worker: WorkerId, reason: str | None, by: IdentityId | None, now: datetime
) -> Worker:
    return await _set_cordon(tx, worker, cordoned=True, reason=reason, by=by, at=now, now=now)


async def uncordon(tx: Tx, worker: WorkerId, now: datetime) -> Worker:
    return await _set_cordon(tx, worker, cordoned=False, reason=None, by=None, at=None, now=now)


async def get_worker(tx: Tx, worker: int) -> Worker:
    found = await tx.first(Worker, _BY_ID, id=worker)
    if found is None:
        raise NotFound(f"There is no worker {worker}.", id=worker)
    return found


async def lock_present(tx: Tx, *, waits: bool) -> list[Worker] | None:
    """The workers that are there, held until the transaction ends so that nobody else gives them work. None where
    another transaction holds one of them, and it is not to be waited for.

    Also those that are silent and not given up yet: what only they can run waits for them.
    """
    total = await tx.answer_later(_Total, _TOTAL)
    locked = f"{_PRESENT} ORDER BY id FOR UPDATE{'' if waits else ' SKIP LOCKED'}"
    present = await tx.answer_later(Worker, locked)
    await tx.settle()
    return present.rows if waits or len(present.rows) == total.rows[0].total else None


async def present(tx: Tx) -> list[Worker]:
    """The same without a lock."""
    return await tx.all(Worker, f"{_PRESENT} ORDER BY id")


async def loads(tx: Tx, workers: Collection[WorkerId]) -> dict[WorkerId, int]:
    """How many executions each has, counted from the rows. Ask after the lock: before it they may change.

    What was put off until now answers with it.
    """
    found = await tx.answer_later(_Load, _LOADS, ids=sorted(workers))
    await tx.settle()
    return {one.worker: one.load for one in found.rows}


def _registered(worker: Worker, now: datetime) -> Happened:
    return Happened(worker=worker.id, event=WorkerEvent.REGISTERED, at=now)


async def _set_cordon(tx: Tx, worker: WorkerId, **values: object) -> Worker:
    if await tx.execute(_CORDON, id=worker, **values) == 0:
        raise NotFound(f"There is no worker {worker}.", id=worker)
    return await get_worker(tx, worker)


def _first_row(new: WorkerId, coming: Registration, now: datetime) -> Worker:
    return Worker(
        id=new,
        name=coming.name,
        worker_type=coming.worker_type,
        host=coming.host,
        port=coming.port,
        status=WorkerStatus.ACTIVE,
        capacity=coming.capacity,
        supported_runtimes=coming.supported_runtimes,
        labels=coming.labels,
        taints=coming.taints,
        incarnation=coming.incarnation,
        last_heartbeat=now,
        created=now,
        updated=now,
    )
