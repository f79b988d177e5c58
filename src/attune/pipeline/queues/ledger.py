"""Notes what a transaction decides in each lane and pool, and writes it as one row of the log for each."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from attune.kernel.ids import LaneId, PoolId
from attune.pipeline.queues.decide import pool_limit
from attune.pipeline.queues.decisions import Counted, Item, pool_log
from attune.pipeline.queues.model import Lane, Pool
from attune.store import schema
from attune.store.database import Tx


class _Row(msgspec.Struct, frozen=True):
    lane: LaneId
    number: int
    at: datetime
    active_before: int
    active_after: int
    queue_length: int
    max_concurrent: int | None
    reason: str | None
    items: Any


class _PoolNotes(msgspec.Struct):
    active_before: int
    limit: int | None
    items: list[Counted]


class Ledger:
    def __init__(self) -> None:
        self._items: dict[LaneId, list[Item]] = {}
        self._before: dict[LaneId, int] = {}
        self._pools: dict[PoolId, _PoolNotes] = {}

    def note(self, lane: Lane, *items: Item) -> None:
        """`lane` as it was before these; only the first note of a transaction looks at its count."""
        self._before.setdefault(lane.id, lane.active_count)
        self._items.setdefault(lane.id, []).extend(items)

    def note_pool(self, pool: Pool, lane: Lane, change: int, *, admitted: bool) -> None:
        """The same for a pool, in which the lane holds so many more slots."""
        notes = self._pools.setdefault(pool.id, _PoolNotes(pool.active_count, None, []))
        if admitted:  # a lane that is only moved may still follow older words
            notes.limit = pool_limit(lane, pool.key)
        notes.items.append(Counted(lane.id, change, admitted))

    def lanes(self) -> list[LaneId]:
        return sorted(self._items)

    def pools(self) -> list[PoolId]:
        return sorted(self._pools)

    async def write(
        self, tx: Tx, lanes: Mapping[LaneId, Lane], pools: Mapping[PoolId, Pool], now: datetime
    ) -> None:
        """One row for each that has notes, under the number that its own row holds for the next."""
        rows = [self._row(lanes[lane], now) for lane in self.lanes()]
        rows += [self._pool_row(pools[pool], now) for pool in self.pools()]
        await tx.insert_later(schema.decision, rows)
        self._items.clear()
        self._before.clear()
        self._pools.clear()

    def _row(self, lane: Lane, now: datetime) -> _Row:
        return _Row(
            lane=lane.id,
            number=lane.next_decision,
            at=now,
            active_before=self._before[lane.id],
            active_after=lane.active_count,
            queue_length=lane.queue_length,
            max_concurrent=lane.max_concurrent,
            reason=lane.reason,
            items=self._items[lane.id],
        )

    def _pool_row(self, pool: Pool, now: datetime) -> _Row:
        notes = self._pools[pool.id]
        return _Row(
            lane=pool_log(pool.id),
            number=pool.next_decision,
            at=now,
            active_before=notes.active_before,
            active_after=pool.active_count,
            queue_length=0,
            max_concurrent=notes.limit,
            reason=None,
            items=notes.items,
        )
