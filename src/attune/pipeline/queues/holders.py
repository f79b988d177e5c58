"""Who holds what others wait for: slots of a lane, of lanes that share a pool, of workers, of the whole system."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId, PolicyId, PoolId, WorkerId
from attune.store.database import Tx

SHOWN: Final = 20

_MOST: Final = 1000
_LOOKED_AT: Final = 100_000
_HOLDER: Final = """
    SELECT e.execution, e.enqueued_at, x.started_at
      FROM entry e JOIN execution x ON x.id = e.execution
"""
_HANDED: Final = f"""{_HOLDER}
     WHERE e.state = 'handed' AND e.lane = ANY(:lanes::bigint[])
     ORDER BY e.enqueued_at, e.sequence LIMIT :most
"""
_READY: Final = """
    SELECT r.execution, r.enqueued_at
      FROM (SELECT execution, lane, enqueued_at, sequence FROM entry WHERE state = 'ready'
             ORDER BY band, enqueued_at, sequence LIMIT :looked_at) r
     WHERE r.lane = ANY(:lanes::bigint[]) ORDER BY r.enqueued_at, r.sequence LIMIT :most
"""
_OF_WORKERS: Final = f"""{_HOLDER}
     WHERE e.state = 'handed' AND e.worker = ANY(:workers::bigint[])
     ORDER BY e.enqueued_at, e.sequence LIMIT :most
"""
_OF_ALL: Final = (
    f"{_HOLDER} WHERE e.state = 'handed' ORDER BY e.enqueued_at, e.sequence LIMIT :most"
)
_SHARING: Final = """
    SELECT id, pools, active_count, queue_length FROM lane
     WHERE policy = :policy AND pools IS NOT NULL AND (active_count > 0 OR queue_length > 0)
     ORDER BY id
"""
_NOT_BEGUN: Final = """
    SELECT execution FROM admission WHERE pool = :pool AND at IS NULL ORDER BY execution LIMIT :most
"""


class Holder(msgspec.Struct, frozen=True):
    """`started_at` is null for one that has a slot and has not begun."""

    execution: ExecutionId
    enqueued_at: datetime
    started_at: datetime | None = None


class SharingLane(msgspec.Struct, frozen=True):
    id: LaneId
    pools: tuple[PoolId, ...]
    active_count: int
    queue_length: int


async def lanes_sharing(tx: Tx, policy: PolicyId, pool: PoolId) -> list[SharingLane]:
    """The lanes that are counted in a pool and have anybody in them."""
    found = await tx.all(SharingLane, _SHARING, policy=policy)
    return [lane for lane in found if pool in lane.pools]


async def slot_holders(tx: Tx, lanes: Collection[LaneId], active: int) -> list[Holder]:
    """Those that have a slot of these lanes, oldest first; `active` is how many there should be.

    Of very many, some: those that wait for a worker far behind others are not looked for.
    """
    ids = sorted(lanes)
    found = await tx.all(Holder, _HANDED, lanes=ids, most=_MOST)
    if len(found) < min(active, _MOST):
        found += await tx.all(Holder, _READY, lanes=ids, looked_at=_LOOKED_AT, most=_MOST)
    return sorted(found, key=lambda one: (one.enqueued_at, one.execution))


async def held_by_workers(tx: Tx, workers: Collection[WorkerId] | None) -> list[Holder]:
    """What these workers have, oldest first; null for all of them."""
    if workers is None:
        return await tx.all(Holder, _OF_ALL, most=_MOST)
    return await tx.all(Holder, _OF_WORKERS, workers=sorted(workers), most=_MOST)


async def not_begun(tx: Tx, pool: PoolId) -> list[ExecutionId]:
    """Those that a rate counts although they have not begun."""
    return await tx.all(ExecutionId, _NOT_BEGUN, pool=pool, most=SHOWN)


def shown(holders: Sequence[Holder]) -> tuple[ExecutionId, ...]:
    return tuple(one.execution for one in holders[:SHOWN])


def elapsed(holders: Sequence[Holder], now: datetime) -> tuple[float, ...]:
    """For how many seconds each has run."""
    return tuple(
        max((now - one.started_at).total_seconds(), 0.0) if one.started_at else 0.0
        for one in holders
    )
