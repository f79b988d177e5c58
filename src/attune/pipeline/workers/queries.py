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

_LOADS: Final = """
    SELECT e.worker, x.status, count(*) AS count
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed' AND e.worker = ANY(:ids::bigint[])
     GROUP BY e.worker, x.status
"""
_SET_ASIDE: Final = """
    SELECT worker, action_ref, failures, until, error FROM worker_setback
     WHERE worker = ANY(:ids::bigint[]) AND until > :now
     ORDER BY worker, action_ref
"""


class WorkerFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What is null is not asked for."""

    role: str | None = None
    status: WorkerStatus | None = None
    cordoned: bool | None = None
    health_state: HealthState | None = None


class ShownWorker(Worker, frozen=True, kw_only=True):
    """The row with its answers to probes, and the login of whoever cordoned it."""

    asked_at: datetime | None = None
    answered_at: datetime | None = None
    cordoned_by_login: str | None = None


_OWN: Final = [each for each in ShownWorker.__struct_fields__ if each != "cordoned_by_login"]
# The names in these statements are those of our own structs.
_WORKERS: Final = f"""
    SELECT {", ".join(_OWN)},
           (SELECT i.login FROM identity i WHERE i.id = x.cordoned_by) AS cordoned_by_login
      FROM worker x
"""  # noqa: S608


class SetAside(msgspec.Struct, frozen=True, kw_only=True):
    """Until then it gets nothing of that action, having failed it so often in a row; `error` is the last one."""

    worker: WorkerId
    action_ref: str
    failures: int
    until: datetime
    error: str | None


class SeenWorker(msgspec.Struct, frozen=True, kw_only=True):
    """`load` counts what it was handed, by status; `age` is that of its last heartbeat."""

    worker: ShownWorker
    load: dict[ExecutionStatus, int]
    set_aside: list[SetAside]
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
    tx: Tx, key: WorkerId | str, readable: Condition, stale: timedelta, now: datetime
) -> SeenWorker | None:
    """By its id, or by its name."""
    where = all_of([readable, equals("name" if isinstance(key, str) else "id", "key", key)])
    return next(iter(await _seen(tx, where, stale, now)), None)


async def _seen(tx: Tx, where: Condition, stale: timedelta, now: datetime) -> list[SeenWorker]:
    sql = f"{_WORKERS} WHERE {where.sql} ORDER BY x.name"
    found = await tx.all(ShownWorker, sql, **where.values)
    ids = [one.id for one in found]
    loads, asides = await _loads(tx, ids), await _asides(tx, ids, now)
    return [
        _judged(one, loads.get(one.id, {}), asides.get(one.id, []), stale, now) for one in found
    ]


async def _loads(tx: Tx, ids: Collection[WorkerId]) -> dict[WorkerId, dict[ExecutionStatus, int]]:
    found: dict[WorkerId, dict[ExecutionStatus, int]] = {}
    for one in await tx.all(_Load, _LOADS, ids=list(ids)) if ids else []:
        found.setdefault(one.worker, {})[one.status] = one.count
    return found


async def _asides(
    tx: Tx, ids: Collection[WorkerId], now: datetime
) -> dict[WorkerId, list[SetAside]]:
    found: dict[WorkerId, list[SetAside]] = {}
    for one in await tx.all(SetAside, _SET_ASIDE, ids=list(ids), now=now) if ids else []:
        found.setdefault(one.worker, []).append(one)
    return found


def _judged(
    worker: ShownWorker,
    load: dict[ExecutionStatus, int],
    set_aside: list[SetAside],
    stale: timedelta,
    now: datetime,
) -> SeenWorker:
    silent = is_stale(worker, stale, now)
    return SeenWorker(
        worker=worker,
        load=load,
        set_aside=set_aside,
        age=max(now - worker.last_heartbeat, timedelta(0)),
        stale=silent,
        health_state=health_of(worker, stale=silent, busy=any(load.values())),
    )
