"""Workers as people want to see them: with what each has to do, and how it is.

There are few of them, so a list reads all that its filters leave and judges each; what it has to do is counted
from the rows of the executions themselves.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.identities.row_conditions import Condition
from attune.kernel.ids import WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.listing import all_of, equals
from attune.pipeline.workers.decide import health_of, is_stale
from attune.pipeline.workers.model import HealthState, Worker, WorkerStatus
from attune.store.database import Tx

# The names in these statements are those of our own structs.
_WORKERS: Final = f"SELECT {', '.join(Worker.__struct_fields__)} FROM worker x"  # noqa: S608
_LOADS: Final = """
    SELECT e.worker, x.status, count(*) AS count
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed' AND e.worker = ANY(:ids::bigint[])
     GROUP BY e.worker, x.status
"""


class WorkerFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What is null is not asked for."""

    role: str | None = None
    status: WorkerStatus | None = None
    cordoned: bool | None = None
    health_state: HealthState | None = None


class SeenWorker(msgspec.Struct, frozen=True, kw_only=True):
    """`load` counts what it was handed, by status; `age` is that of its last heartbeat."""

    worker: Worker
    load: dict[ExecutionStatus, int]
    age: timedelta
    stale: bool
    health_state: HealthState


class _Load(msgspec.Struct, frozen=True):
    worker: WorkerId
    status: ExecutionStatus
    count: int


async def list_workers(
    tx: Tx, filters: WorkerFilters, readable: Condition, stale: timedelta, now: datetime
) -> list[SeenWorker]:
    """By name. `stale` is the silence after which a worker counts as gone."""
    where = all_of(
        [
            readable,
            equals("worker_role", "role", filters.role),
            equals("status", "status", filters.status),
            equals("cordoned", "cordoned", filters.cordoned),
        ]
    )
    seen = await _seen(tx, where, stale, now)
    wanted = filters.health_state
    return [one for one in seen if wanted in (None, one.health_state)]


async def find_worker(
    tx: Tx, worker: WorkerId, readable: Condition, stale: timedelta, now: datetime
) -> SeenWorker | None:
    where = all_of([readable, equals("id", "worker", worker)])
    return next(iter(await _seen(tx, where, stale, now)), None)


async def _seen(tx: Tx, where: Condition, stale: timedelta, now: datetime) -> list[SeenWorker]:
    sql = f"{_WORKERS} WHERE {where.sql} ORDER BY x.name"
    found = await tx.all(Worker, sql, **where.values)
    loads = await _loads(tx, [one.id for one in found])
    return [_judged(one, loads.get(one.id, {}), stale, now) for one in found]


async def _loads(tx: Tx, ids: Collection[WorkerId]) -> dict[WorkerId, dict[ExecutionStatus, int]]:
    found: dict[WorkerId, dict[ExecutionStatus, int]] = {}
    for one in await tx.all(_Load, _LOADS, ids=list(ids)) if ids else []:
        found.setdefault(one.worker, {})[one.status] = one.count
    return found


def _judged(
    worker: Worker, load: dict[ExecutionStatus, int], stale: timedelta, now: datetime
) -> SeenWorker:
    age = max(now - worker.last_heartbeat, timedelta(0))
    silent = is_stale(worker, stale, now)
    state = health_of(worker, stale=silent, busy=any(load.values()))
    return SeenWorker(worker=worker, load=load, age=age, stale=silent, health_state=state)
