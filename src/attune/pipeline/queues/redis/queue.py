"""The queue service on Redis: sorted sets of those that wait, sets of those that hold a slot.

Several executors share it; every call is one Lua script, so none sees another half done.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from attune.kernel.errors import InvalidInput
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.port import QueueItem, QueueStatus, check_limit, requested_payload
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.scripts import (
    ENQUEUE,
    POSITION,
    PUT_BACK,
    RELEASE,
    REMOVE,
    SCHEDULE,
    STATUS,
    UPDATE_PRIORITY,
)

_EPOCH: Final = datetime(2024, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SEQUENCES: Final = 10**12
_MICROS: Final = 10**15
# What one script may take in: it keeps everybody else waiting meanwhile.
_BATCH: Final = 500


class RedisQueue:
    """The adapter. It refuses with `QueueLost` until a mirror has vouched for what Redis holds."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def enqueue(self, item: QueueItem) -> int:
        await self.enqueue_many([item])
        return int(await self._link.call(POSITION, item.execution))

    async def enqueue_many(self, items: Sequence[QueueItem]) -> int:
        new = 0
        for some in _batches(items):
            arguments = [word for item in some for word in _words(item)]
            new += int(await self._link.call(ENQUEUE, *arguments))
        return new

    async def try_schedule(
        self, max_active: int | None, lane: LaneId | None = None
    ) -> QueueItem | None:
        found = await self.try_schedule_many(lane, max_active, 1)
        return found[0] if found else None

    async def try_schedule_many(
        self, lane: LaneId | None, max_active: int | None, count: int
    ) -> list[QueueItem]:
        check_limit(max_active, count)
        most = "" if max_active is None else max_active
        given: list[QueueItem] = []
        while len(given) < count:
            asked = min(count - len(given), _BATCH)
            found = await self._link.call(SCHEDULE, lane_word(lane), most, asked)
            given += [item_of(*found[i : i + 3]) for i in range(0, len(found), 3)]
            if len(found) < 3 * asked:
                break
        return given

    async def release(self, execution: ExecutionId) -> bool:
        return bool(await self.release_many([execution]))

    async def release_many(self, executions: Collection[ExecutionId]) -> set[ExecutionId]:
        freed: set[ExecutionId] = set()
        for some in _batches(sorted(executions)):
            freed.update(ExecutionId(int(one)) for one in await self._link.call(RELEASE, *some))
        return freed

    async def put_back(self, execution: ExecutionId) -> bool:
        return bool(await self._link.call(PUT_BACK, execution))

    async def update_priority(self, execution: ExecutionId, priority: Priority) -> bool:
        return bool(await self._link.call(UPDATE_PRIORITY, execution, priority.value))

    async def remove(self, execution: ExecutionId) -> bool:
        return bool(await self._link.call(REMOVE, execution))

    async def get_queue_status(self, lane: LaneId | None = None) -> QueueStatus:
        depth, active, *_ = await self._link.call(STATUS, lane_word(lane))
        return QueueStatus(depth, active)

    async def get_pending_by_priority(self, lane: LaneId | None = None) -> dict[Priority, int]:
        _, _, *counts = await self._link.call(STATUS, lane_word(lane))
        return dict(zip(Priority, counts, strict=True))

    async def position(self, execution: ExecutionId) -> int | None:
        return int(await self._link.call(POSITION, execution)) or None


def lane_word(lane: LaneId | None) -> str:
    return "" if lane is None else str(lane)


def place_of(item: QueueItem) -> str:
    """`lane:band:sequence:micros`, as `places` keeps it; what would leave its band is refused."""
    micros = (item.enqueued_at - _EPOCH) // _MICROSECOND
    if not 0 <= item.sequence < _SEQUENCES:
        raise InvalidInput("sequence: must be from 0 to 10^12 - 1", field="sequence")
    if not 0 <= micros < _MICROS:
        raise InvalidInput("enqueued_at: must be from 2024 to 2055", field="enqueued_at")
    return f"{lane_word(item.lane)}:{item.priority.value}:{item.sequence}:{micros}"


def item_of(execution: bytes, place: bytes, event: bytes) -> QueueItem:
    """Without its event, which has a limited life, the message names the execution alone."""
    lane, band, sequence, micros = place.decode().split(":")
    found = ExecutionId(int(execution))
    return QueueItem(
        execution=found,
        lane=LaneId(int(lane)) if lane else None,
        priority=Priority(int(band)),
        sequence=int(sequence),
        enqueued_at=_EPOCH + timedelta(microseconds=int(micros)),
        payload=event or requested_payload(found),
    )


def _words(item: QueueItem) -> tuple[str | bytes | int, ...]:
    return item.execution, place_of(item), item.payload


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
