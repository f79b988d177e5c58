"""The queue service's steps over lanes and entries, each under the lock of its queue.

They ask no gate: the limit is an argument. What they do to a lane goes through `Lanes`, so its counters, the pools that
it shares and the decision log follow. Lanes that share pools, or turn away, are promoted by their policy as ever.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.errors import Contention, NotFound
from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues import locking
from attune.pipeline.queues.decide import promoted, turns
from attune.pipeline.queues.decisions import SYSTEM, Admitted, Joined, Left, Reprioritized
from attune.pipeline.queues.items import ITEM, ItemRow
from attune.pipeline.queues.model import Entry, Lane, QueueTerms, State, Waiter
from attune.pipeline.queues.port import QueueItem
from attune.pipeline.queues.steps import Lanes, lanes_by_id
from attune.store import schema
from attune.store.database import Tx
from attune.store.values import Json

# Nothing is promoted behind the caller's back.
_TERMS: Final = QueueTerms(deferred=True)
# The row that stands for the whole system's queue; whoever gives its slots holds it.
_SYSTEM_ROW: Final = "queue.system"

_ADD_SYSTEM: Final = """
    INSERT INTO setting (name, value, updated) VALUES (:name, :value, :now)
    ON CONFLICT (name) DO NOTHING
"""
_LOCK_SYSTEM: Final = "SELECT name FROM setting WHERE name = :name FOR UPDATE"
_PRESENT: Final = "SELECT execution FROM entry WHERE execution = ANY(:ids::bigint[])"
_FACTS: Final = """
    SELECT id, attempt, definition FROM execution WHERE id = ANY(:ids::bigint[])
"""
_STANDING: Final = f"{ITEM} WHERE e.execution = ANY(:ids::bigint[]) FOR UPDATE OF e"
_FIRST: Final = f"""{ITEM}
     WHERE e.lane = :lane AND e.state = 'queued' ORDER BY e.band, e.sequence LIMIT :count
"""
_HEADS: Final = """
    SELECT e.execution, e.band, e.sequence, e.enqueued_at FROM entry e
     WHERE e.execution = ANY(ARRAY(
           SELECT (SELECT h.execution FROM entry h
                    WHERE h.lane = :lane AND h.band = b.band AND h.state = 'queued'
                      AND h.execution <> ALL(:chosen::bigint[])
                    ORDER BY h.sequence LIMIT 1)
             FROM (SELECT 0 AS band UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                   UNION ALL SELECT 4) b))
"""
_HANDED: Final = "SELECT count(*) FROM entry WHERE state = 'handed'"
_FIRST_READY: Final = f"""{ITEM}
     WHERE e.state = 'ready' ORDER BY e.band, e.enqueued_at, e.sequence, e.execution
     LIMIT :count FOR UPDATE OF e
"""
_MOVE: Final = """
    UPDATE entry SET state = :state, reason = :reason WHERE execution = ANY(:ids::bigint[])
"""
_BAND: Final = "UPDATE entry SET band = :band WHERE execution = :id"
_DROP: Final = "DELETE FROM entry WHERE execution = ANY(:ids::bigint[])"


class _Facts(msgspec.Struct, frozen=True):
    id: ExecutionId
    attempt: int
    definition: ActionDefinitionId


async def enqueue(tx: Tx, items: Sequence[QueueItem], now: datetime) -> int:
    if any(item.lane is None for item in items):
        await _lock_system(tx, now)
    lanes = await _known(tx, {item.lane for item in items if item.lane is not None}, now)
    wanted = {item.execution: item for item in items}
    present = await tx.all(ExecutionId, _PRESENT, ids=sorted(wanted))
    new = [item for item in wanted.values() if item.execution not in set(present)]
    facts = await _facts(tx, [item.execution for item in new])
    await tx.insert(schema.entry, [_entry(item, facts[item.execution]) for item in new])
    by_lane: dict[LaneId, list[QueueItem]] = defaultdict(list)
    for item in new:
        if item.lane is not None:
            by_lane[item.lane].append(item)
    for lane_id, some in by_lane.items():
        lanes.change(_longer(lanes.held.lanes[lane_id], some), *map(_joined, some))
    await lanes.promote()
    await lanes.save()
    return len(new)


async def schedule_lane(
    tx: Tx, lane_id: LaneId, max_active: int | None, count: int, now: datetime
) -> list[ItemRow]:
    lanes = await lanes_by_id(tx, [lane_id], _TERMS, now)
    lane = lanes.held.lanes.get(lane_id)
    if lane is None:
        return []
    free = _free(max_active, lane.active_count, count)
    chosen = await tx.all(ItemRow, _FIRST, lane=lane_id, count=free) if free else []
    if not chosen:
        return []
    ids = [row.execution for row in chosen]
    waiting = await tx.all(Waiter, _HEADS, lane=lane_id, chosen=ids)
    given = turns([*map(_waiter, chosen), *waiting], len(chosen), None)
    await tx.execute(_MOVE, ids=ids, state=State.READY, reason=GateName.WORKER)
    lanes.change(
        promoted(lane, len(ids)),
        *(
            Admitted(t.waiter.execution, t.waiter.sequence, t.waiter.band, t.passed_over, t.rule)
            for t in given
        ),
    )
    lanes.count(lane, active=len(ids))
    await lanes.promote()
    await lanes.save()
    return chosen


async def schedule_system(
    tx: Tx, max_active: int | None, count: int, now: datetime
) -> list[ItemRow]:
    await _lock_system(tx, now)
    handed = await tx.one(int, _HANDED)
    free = _free(max_active, handed, count)
    chosen = await tx.all(ItemRow, _FIRST_READY, count=free) if free else []
    ids = [row.execution for row in chosen]
    if ids:
        await tx.execute(_MOVE, ids=ids, state=State.HANDED, reason=None)
    return chosen


async def release(tx: Tx, ids: Collection[ExecutionId], now: datetime) -> set[ExecutionId]:
    lanes, standing = await _standing(tx, ids, now)
    return await _leave(lanes, [row for row in standing if _holds_slot(row)])


async def remove(tx: Tx, execution: ExecutionId, now: datetime) -> bool:
    lanes, standing = await _standing(tx, [execution], now)
    return bool(await _leave(lanes, standing))


async def put_back(tx: Tx, execution: ExecutionId, now: datetime) -> bool:
    lanes, standing = await _standing(tx, [execution], now)
    for row in standing:
        if row.state is State.HANDED:
            await tx.execute(_MOVE, ids=[execution], state=State.READY, reason=GateName.WORKER)
            return True
        if _holds_slot(row):
            await tx.execute(_MOVE, ids=[execution], state=State.QUEUED, reason=GateName.TURN)
            lane = lanes.held.lanes[row.lane]
            left = Left(execution, row.sequence, row.band, held=True)
            lanes.change(promoted(lane, -1), left, _joined(row.item()))
            lanes.count(lane, active=-1)
            await lanes.promote()
            await lanes.save()
            return True
    return False


async def update_priority(
    tx: Tx, execution: ExecutionId, priority: Priority, now: datetime
) -> bool:
    lanes, standing = await _standing(tx, [execution], now)
    waiting = [row for row in standing if row.state is not State.HANDED]
    for row in waiting:
        await tx.execute(_BAND, id=execution, band=priority)
        if row.lane != SYSTEM:
            note = Reprioritized(execution, row.sequence, row.band, priority)
            lanes.change(lanes.held.lanes[row.lane], note)
    await lanes.save()
    return bool(waiting)


async def _lock_system(tx: Tx, now: datetime) -> None:
    await tx.execute(_ADD_SYSTEM, name=_SYSTEM_ROW, value=Json(None), now=now)
    await tx.all(str, _LOCK_SYSTEM, name=_SYSTEM_ROW)


async def _known(tx: Tx, ids: Collection[LaneId], now: datetime) -> Lanes:
    lanes = await lanes_by_id(tx, ids, _TERMS, now)
    for missing in sorted(set(ids) - lanes.held.lanes.keys()):
        raise NotFound(f"lane: there is no lane {missing}", field="lane", id=missing)
    return lanes


async def _standing(
    tx: Tx, ids: Collection[ExecutionId], now: datetime
) -> tuple[Lanes, list[ItemRow]]:
    """Where these stand, under the locks of their lanes."""
    found = await locking.of_executions(tx, ids)
    lanes = await lanes_by_id(tx, [lane for lane in found if lane != SYSTEM], _TERMS, now)
    standing = await tx.all(ItemRow, _STANDING, ids=sorted(ids))
    if any(row.lane != SYSTEM and row.lane not in lanes.held.lanes for row in standing):
        raise Contention("An execution moved to another lane meanwhile.")
    return lanes, standing


async def _leave(lanes: Lanes, rows: Sequence[ItemRow]) -> set[ExecutionId]:
    alone = [row.execution for row in rows if row.lane == SYSTEM]
    if alone:
        await lanes.tx.execute(_DROP, ids=alone)
    await lanes.leave([row.execution for row in rows if row.lane != SYSTEM])
    await lanes.save()
    return {row.execution for row in rows}


async def _facts(tx: Tx, ids: Sequence[ExecutionId]) -> dict[ExecutionId, _Facts]:
    found = {one.id: one for one in await tx.all(_Facts, _FACTS, ids=sorted(ids))}
    for missing in sorted(set(ids) - found.keys()):
        raise NotFound(f"execution: there is no execution {missing}", field="execution", id=missing)
    return found


def _free(max_active: int | None, active: int, count: int) -> int:
    return count if max_active is None else max(min(count, max_active - active), 0)


def _holds_slot(row: ItemRow) -> bool:
    """One without a lane has nothing before it is handed."""
    return row.state is State.HANDED or (row.state is State.READY and row.lane != SYSTEM)


def _entry(item: QueueItem, facts: _Facts) -> Entry:
    alone = item.lane is None
    return Entry(
        execution=item.execution,
        lane=SYSTEM if item.lane is None else item.lane,
        band=item.priority,
        sequence=item.sequence,
        state=State.READY if alone else State.QUEUED,
        reason=GateName.WORKER if alone else GateName.TURN,
        enqueued_at=item.enqueued_at,
        attempt=facts.attempt,
        definition=facts.definition,
    )


def _longer(lane: Lane, some: Sequence[QueueItem]) -> Lane:
    return msgspec.structs.replace(
        lane,
        next_sequence=max(lane.next_sequence, *(item.sequence + 1 for item in some)),
        queue_length=lane.queue_length + len(some),
        total_enqueued=lane.total_enqueued + len(some),
        last_enqueued_at=max(lane.last_enqueued_at, *(item.enqueued_at for item in some)),
    )


def _joined(item: QueueItem) -> Joined:
    return Joined(item.execution, item.sequence, item.priority, GateName.TURN)


def _waiter(row: ItemRow) -> Waiter:
    return Waiter(row.execution, row.band, row.sequence, row.enqueued_at)
