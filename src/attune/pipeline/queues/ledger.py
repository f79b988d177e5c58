"""Notes what a transaction decides in each lane, and writes it as one row of the log for each."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from attune.kernel.ids import LaneId
from attune.pipeline.queues.decisions import Item
from attune.pipeline.queues.model import Lane
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


class Ledger:
    def __init__(self) -> None:
        self._items: dict[LaneId, list[Item]] = {}
        self._before: dict[LaneId, int] = {}

    def note(self, lane: Lane, *items: Item) -> None:
        """`lane` as it was before these; only the first note of a transaction looks at its count."""
        self._before.setdefault(lane.id, lane.active_count)
        self._items.setdefault(lane.id, []).extend(items)

    def lanes(self) -> list[LaneId]:
        return sorted(self._items)

    async def write(self, tx: Tx, lanes: Mapping[LaneId, Lane], now: datetime) -> None:
        """One row for each lane that has notes, under the number that its row holds for the next."""
        rows = [self._row(lanes[lane], now) for lane in self.lanes()]
        await tx.insert(schema.decision, rows)
        self._items.clear()
        self._before.clear()

    def _row(self, lane: Lane, now: datetime) -> _Row:
        return _Row(
            lane=lane.id,
            number=lane.next_decision,
            at=now,
            active_before=self._before.get(lane.id, 0),
            active_after=lane.active_count,
            queue_length=lane.queue_length,
            max_concurrent=lane.max_concurrent,
            reason=lane.reason,
            items=self._items[lane.id],
        )
