"""The queue service on the database: lanes and entries are the queue itself."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from attune.kernel.clock import Clock
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.items import ITEM, ItemRow
from attune.pipeline.queues.model import State
from attune.pipeline.queues.port import QueueItem, QueueStatus, check_limit
from attune.pipeline.queues.sql import steps
from attune.store.database import Database, Tx

_ONE: Final = f"{ITEM} WHERE e.execution = :id"
_AHEAD_IN_LANE: Final = """
    SELECT count(*) FROM entry
     WHERE lane = :lane AND state = 'queued' AND (band, sequence) < (:band, :sequence)
"""
_AHEAD_IN_SYSTEM: Final = """
    SELECT count(*) FROM entry
     WHERE state = 'ready'
       AND (band, enqueued_at, sequence, execution) < (:band, :at, :sequence, :execution)
"""
_LANE_STATUS: Final = """
    SELECT queue_length AS queue_depth, active_count FROM lane WHERE id = :lane
"""
_SYSTEM_STATUS: Final = """
    SELECT (SELECT count(*) FROM entry WHERE state = 'ready') AS queue_depth,
           (SELECT count(*) FROM entry WHERE state = 'handed') AS active_count
"""
_LANE_BANDS: Final = """
    SELECT band, count(*) AS count FROM entry WHERE state = 'queued' AND lane = :lane GROUP BY band
"""
_SYSTEM_BANDS: Final = """
    SELECT band, count(*) AS count FROM entry WHERE state = 'ready' GROUP BY band
"""


class _Band(msgspec.Struct, frozen=True):
    band: Priority
    count: int


class SqlQueue:
    """The adapter. Each call is one transaction of its own.

    A position is counted, so it costs more the longer the queue; the flow, which has no use for it, does not come here.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def enqueue(self, item: QueueItem) -> int:
        await self.enqueue_many([item])
        return await self.position(item.execution) or 0

    async def enqueue_many(self, items: Sequence[QueueItem]) -> int:
        return await self._database.run(steps.enqueue, items, self._clock.now())

    async def try_schedule(
        self, max_active: int | None, lane: LaneId | None = None
    ) -> QueueItem | None:
        found = await self.try_schedule_many(lane, max_active, 1)
        return found[0] if found else None

    async def try_schedule_many(
        self, lane: LaneId | None, max_active: int | None, count: int
    ) -> list[QueueItem]:
        check_limit(max_active, count)
        now = self._clock.now()
        if lane is None:
            found = await self._database.run(steps.schedule_system, max_active, count, now)
        else:
            found = await self._database.run(steps.schedule_lane, lane, max_active, count, now)
        return [row.item() for row in found]

    async def release(self, execution: ExecutionId) -> bool:
        return bool(await self.release_many([execution]))

    async def release_many(self, executions: Collection[ExecutionId]) -> set[ExecutionId]:
        return await self._database.run(steps.release, executions, self._clock.now())

    async def put_back(self, execution: ExecutionId) -> bool:
        return await self._database.run(steps.put_back, execution, self._clock.now())

    async def update_priority(self, execution: ExecutionId, priority: Priority) -> bool:
        now = self._clock.now()
        return await self._database.run(steps.update_priority, execution, priority, now)

    async def remove(self, execution: ExecutionId) -> bool:
        return await self._database.run(steps.remove, execution, self._clock.now())

    async def get_queue_status(self, lane: LaneId | None = None) -> QueueStatus:
        return await self._database.read(_status, lane)

    async def get_pending_by_priority(self, lane: LaneId | None = None) -> dict[Priority, int]:
        found = {one.band: one.count for one in await self._database.read(_bands, lane)}
        return {priority: found.get(priority, 0) for priority in Priority}

    async def position(self, execution: ExecutionId) -> int | None:
        return await self._database.read(_position, execution)


async def _status(tx: Tx, lane: LaneId | None) -> QueueStatus:
    if lane is None:
        return await tx.one(QueueStatus, _SYSTEM_STATUS)
    return await tx.first(QueueStatus, _LANE_STATUS, lane=lane) or QueueStatus(0, 0)


async def _bands(tx: Tx, lane: LaneId | None) -> list[_Band]:
    if lane is None:
        return await tx.all(_Band, _SYSTEM_BANDS)
    return await tx.all(_Band, _LANE_BANDS, lane=lane)


async def _position(tx: Tx, execution: ExecutionId) -> int | None:
    row = await tx.first(ItemRow, _ONE, id=execution)
    if row is None or row.state is State.HANDED:
        return None
    if row.state is State.QUEUED:
        ahead = await tx.one(
            int, _AHEAD_IN_LANE, lane=row.lane, band=row.band, sequence=row.sequence
        )
    else:
        ahead = await tx.one(
            int,
            _AHEAD_IN_SYSTEM,
            band=row.band,
            at=row.enqueued_at,
            sequence=row.sequence,
            execution=row.execution,
        )
    return ahead + 1
