"""Entries as items of a queue, read from the database in pages that an index serves."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from attune.kernel.ids import ActionId, EnforcementId, ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.decisions import SYSTEM
from attune.pipeline.queues.model import State
from attune.pipeline.queues.port import QueueItem, requested_payload
from attune.store.database import Database, Tx

PAGE: Final = 500

ITEM: Final = """
    SELECT e.execution, e.lane, e.band, e.sequence, e.state, e.enqueued_at,
           x.action, x.action_ref, x.enforcement
      FROM entry e LEFT JOIN execution x ON x.id = e.execution
"""
_THESE: Final = f"{ITEM} WHERE e.execution = ANY(:ids::bigint[])"
_ALL: Final = f"{ITEM} WHERE e.execution > :after ORDER BY e.execution LIMIT :size"
_QUEUED: Final = f"""{ITEM}
     WHERE e.state = 'queued' AND e.lane = :lane AND (e.band, e.sequence) > (:band, :sequence)
     ORDER BY e.band, e.sequence LIMIT :size
"""
_READY: Final = f"""{ITEM}
     WHERE e.state = 'ready' AND (e.lane = :lane OR :every)
       AND (e.band, e.enqueued_at, e.sequence, e.execution) > (:band, :at, :sequence, :execution)
     ORDER BY e.band, e.enqueued_at, e.sequence, e.execution LIMIT :size
"""
_HANDED: Final = f"""{ITEM}
     WHERE e.state = 'handed' AND (e.lane = :lane OR :every) AND e.execution > :after
     ORDER BY e.execution LIMIT :size
"""


class ItemRow(msgspec.Struct, frozen=True, kw_only=True):
    """An entry, and what its message says of the execution."""

    execution: ExecutionId
    lane: LaneId
    band: Priority
    sequence: int
    state: State
    enqueued_at: datetime
    action: ActionId | None
    action_ref: str | None
    enforcement: EnforcementId | None

    def item(self) -> QueueItem:
        payload = requested_payload(self.execution, self.action, self.action_ref, self.enforcement)
        return QueueItem(
            execution=self.execution,
            lane=None if self.lane == SYSTEM else self.lane,
            priority=self.band,
            sequence=self.sequence,
            enqueued_at=self.enqueued_at,
            payload=payload,
        )


_BEGINNING: Final = ItemRow(
    execution=ExecutionId(0),
    lane=SYSTEM,
    band=Priority.CRITICAL,
    sequence=-1,
    state=State.QUEUED,
    enqueued_at=datetime(1970, 1, 1, tzinfo=UTC),
    action=None,
    action_ref=None,
    enforcement=None,
)


async def entries_by_id(tx: Tx, ids: Sequence[ExecutionId]) -> list[ItemRow]:
    return await tx.all(ItemRow, _THESE, ids=ids)


async def all_entries(database: Database) -> AsyncIterator[list[ItemRow]]:
    """Each entry once, as it is when its page is read."""
    last = _BEGINNING
    while page := await database.read(_page_of_all, last):
        yield page
        last = page[-1]


async def entries_of(database: Database, lane: LaneId | None) -> AsyncIterator[list[ItemRow]]:
    """Those of a lane; for the whole system those that hold a lane's slot."""
    states = (State.READY, State.HANDED) if lane is None else tuple(State)
    for state in states:
        last = _BEGINNING
        while page := await database.read(_page, state, lane, last):
            yield page
            last = page[-1]


async def _page_of_all(tx: Tx, last: ItemRow) -> list[ItemRow]:
    return await tx.all(ItemRow, _ALL, after=last.execution, size=PAGE)


async def _page(tx: Tx, state: State, lane: LaneId | None, last: ItemRow) -> list[ItemRow]:
    match state:
        case State.QUEUED:
            return await tx.all(
                ItemRow, _QUEUED, lane=lane, band=last.band, sequence=last.sequence, size=PAGE
            )
        case State.READY:
            return await tx.all(
                ItemRow,
                _READY,
                lane=lane,
                every=lane is None,
                band=last.band,
                at=last.enqueued_at,
                sequence=last.sequence,
                execution=last.execution,
                size=PAGE,
            )
        case State.HANDED:
            return await tx.all(
                ItemRow, _HANDED, lane=lane, every=lane is None, after=last.execution, size=PAGE
            )
