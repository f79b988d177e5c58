"""Whether Redis is what the database says: how many wait and hold a slot, and who is first."""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.lua import PREFIX
from attune.pipeline.queues.redis.mirror_scripts import LOOK
from attune.pipeline.queues.redis.queue import lane_word
from attune.store.database import Database, Tx

_LANES_AT_ONCE: Final = 500

_SHAPE: Final = """
    SELECT l.id, l.queue_length, l.active_count,
           (SELECT e.execution FROM entry e WHERE e.lane = l.id AND e.state = 'queued'
             ORDER BY e.band, e.sequence LIMIT 1) AS head
      FROM lane l
"""
_SOME: Final = f"{_SHAPE} WHERE l.id = ANY(:ids::bigint[])"
_NEXT: Final = f"{_SHAPE} WHERE l.id > :after ORDER BY l.id LIMIT :size"
_SYSTEM: Final = """
    SELECT (SELECT count(*) FROM entry WHERE state = 'ready') AS queue_length,
           (SELECT count(*) FROM entry WHERE state = 'handed') AS active_count,
           (SELECT execution FROM entry WHERE state = 'ready'
             ORDER BY band, enqueued_at, sequence, execution LIMIT 1) AS head
"""


class _Shape(msgspec.Struct, frozen=True):
    """What a queue looks like from outside; `id` is null for the whole system."""

    queue_length: int
    active_count: int
    head: ExecutionId | None
    id: LaneId | None = None


class Difference(msgspec.Struct, frozen=True):
    """How many more wait and hold a slot in the database than in Redis, and whether another one is first."""

    waiting: int
    active: int
    head: bool


class Comparison:
    def __init__(self, link: RedisLink, database: Database) -> None:
        self._link = link
        self._database = database

    async def of_these(self, lanes: Collection[LaneId | None]) -> dict[LaneId | None, Difference]:
        """The queues among these that differ. A lane that the database does not know is empty there."""
        found: dict[LaneId | None, Difference] = {}
        wanted = sorted(lane for lane in lanes if lane is not None)
        for start in range(0, len(wanted), _LANES_AT_ONCE):
            some = wanted[start : start + _LANES_AT_ONCE]
            known = {shape.id: shape for shape in await self._database.read(_some_lanes, some)}
            shapes = [known.get(lane, _Shape(0, 0, None, lane)) for lane in some]
            found.update(await self._differing(shapes))
        if None in lanes:
            found.update(await self._differing([await self._database.read(_whole_system)]))
        return found

    async def of_all(self) -> dict[LaneId | None, Difference]:
        """Every lane of the database, every lane that only Redis has, and the whole system."""
        found: dict[LaneId | None, Difference] = {}
        unknown = await self._lanes_in_redis()
        after = 0
        while page := await self._database.read(_next_lanes, after):
            found.update(await self._differing(page))
            unknown -= {shape.id for shape in page}
            after = page[-1].id or 0
        return found | await self.of_these([*unknown, None])

    async def _differing(self, shapes: Sequence[_Shape]) -> dict[LaneId | None, Difference]:
        seen = await self._looked([shape.id for shape in shapes])
        pairs = zip(shapes, seen, strict=True)
        return {shape.id: _difference(shape, other) for shape, other in pairs if shape != other}

    async def _looked(self, lanes: Sequence[LaneId | None]) -> list[_Shape]:
        words = iter(await self._link.call(LOOK, *map(lane_word, lanes)))
        return [
            _Shape(depth, active, ExecutionId(int(head)) if head else None, lane)
            for lane, depth, active, head in zip(lanes, words, words, words, strict=True)
        ]

    async def _lanes_in_redis(self) -> set[LaneId | None]:
        found: set[LaneId | None] = set()
        async for keys in self._keys("pending"):
            found.update(_lane_of(key) for key in keys)
        async for keys in self._keys("active"):
            found.update(_lane_of(key) for key in keys)
        return found

    def _keys(self, kind: str) -> AsyncIterator[list[bytes]]:
        return self._link.scan("SCAN", "MATCH", f"{PREFIX}{kind}:*")


def _lane_of(key: bytes) -> LaneId:
    return LaneId(int(key.rpartition(b":")[2]))


def _difference(shape: _Shape, other: _Shape) -> Difference:
    return Difference(
        shape.queue_length - other.queue_length,
        shape.active_count - other.active_count,
        shape.head != other.head,
    )


async def _some_lanes(tx: Tx, ids: list[LaneId]) -> list[_Shape]:
    return await tx.all(_Shape, _SOME, ids=ids)


async def _next_lanes(tx: Tx, after: int) -> list[_Shape]:
    return await tx.all(_Shape, _NEXT, after=after, size=_LANES_AT_ONCE)


async def _whole_system(tx: Tx) -> _Shape:
    return await tx.one(_Shape, _SYSTEM)
