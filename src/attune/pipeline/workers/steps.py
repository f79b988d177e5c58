"""A worker's coming, its cordon, and whom others may give work."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.errors import NotFound
from attune.kernel.ids import IdentityId, WorkerId
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.pipeline.workers.model import Registration, Worker, WorkerStatus
from attune.store import schema
from attune.store.database import Answer, Tx
from attune.store.values import Json

_COLUMNS = ", ".join(Worker.__struct_fields__)
# The names in these statements are those of our own structs.
_BY_NAME: Final = f"SELECT {_COLUMNS} FROM worker WHERE name = :name FOR UPDATE"  # noqa: S608
_BY_ID: Final = f"SELECT {_COLUMNS} FROM worker WHERE id = :id"  # noqa: S608
_FROM_PRESENT: Final = "FROM worker WHERE status IN ('active', 'error') AND NOT cordoned"
_PRESENT: Final = f"SELECT {_COLUMNS} {_FROM_PRESENT} ORDER BY id"
_TOTAL: Final = f"SELECT count(*) AS total {_FROM_PRESENT}"
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
     WHERE state = 'handed' AND worker = ANY({workers}) GROUP BY worker
"""
_LOADS_OF: Final = _LOADS.format(workers=":ids::bigint[]")
_LOADS_OF_PRESENT: Final = _LOADS.format(workers=f"ARRAY(SELECT id {_FROM_PRESENT})")


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


@dataclass(frozen=True, slots=True)
class Presence:
    """The workers that are there and what each has, told with what was put off."""

    _total: Answer[_Total]
    _workers: Answer[Worker]
    _loads: Answer[_Load]
    _waited: bool

    @property
    def is_whole(self) -> bool:
        """Whether nobody else holds one of them, or it was waited for."""
        return self._waited or len(self.workers) == self._total.rows[0].total

    @property
    def workers(self) -> list[Worker]:
        return self._workers.rows

    @property
    def loads(self) -> dict[WorkerId, int]:
        return _by_worker(self._loads.rows)


async def lock_present(tx: Tx, *, waits: bool) -> Presence:
    """Held until the transaction ends so that nobody else gives them work, but for those that another transaction holds
    and that are not to be waited for.

    Also those that are silent and not given up yet: what only they can run waits for them.
    """
    return Presence(
        await tx.answer_later(_Total, _TOTAL),
        await tx.answer_later(Worker, f"{_PRESENT} FOR UPDATE{'' if waits else ' SKIP LOCKED'}"),
        await tx.answer_later(_Load, _LOADS_OF_PRESENT),
        waits,
    )


async def present(tx: Tx) -> list[Worker]:
    """The same without a lock."""
    return await tx.all(Worker, _PRESENT)


async def loads(tx: Tx, workers: Collection[WorkerId]) -> dict[WorkerId, int]:
    """How many executions each has, counted from the rows."""
    return _by_worker(await tx.all(_Load, _LOADS_OF, ids=sorted(workers)))


def _by_worker(loads: Sequence[_Load]) -> dict[WorkerId, int]:
    return {one.worker: one.load for one in loads}


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
