"""What operators do to queues: pause, resume, clear, change a priority or a limit."""

from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.errors import AttuneError, Conflict, Contention, NotFound
from attune.kernel.ids import ExecutionId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues import locking
from attune.pipeline.queues.decisions import LimitChanged, Paused, Reprioritized, Resumed
from attune.pipeline.queues.model import Lane, QueueTerms, State
from attune.pipeline.queues.steps import Lanes, lanes_by_id, lanes_of_executions
from attune.store.database import Tx

_WAITING: Final = frozenset({ExecutionStatus.REQUESTED, ExecutionStatus.SCHEDULING})
_FIRST: Final = """
    SELECT e.execution FROM entry e WHERE e.lane = ANY(:lanes::bigint[]) AND e.state <> 'handed'
     UNION ALL
    SELECT d.execution FROM delay d WHERE d.lane = ANY(:lanes::bigint[])
     LIMIT :count
"""
_RESTING: Final = "SELECT lane, band, sequence FROM delay WHERE execution = :id FOR UPDATE"
_RESTING_BAND: Final = "UPDATE delay SET band = :band WHERE execution = :id"
_PLACE: Final = """
    SELECT lane, band, sequence, state FROM entry WHERE execution = :id FOR UPDATE
"""
_BAND: Final = "UPDATE entry SET band = :band WHERE execution = :id"
_PRIORITY: Final = "UPDATE execution SET priority = :band, updated = :now WHERE id = :id"
_STATUS: Final = "SELECT status FROM execution WHERE id = :id"


class _Place(msgspec.Struct, frozen=True):
    lane: LaneId
    band: Priority
    sequence: int
    state: State


class _Resting(msgspec.Struct, frozen=True):
    lane: LaneId
    band: Priority
    sequence: int | None


async def set_paused(lanes: Lanes, by: str, *, paused: bool) -> None:
    """What workers have goes on. What has a slot and no worker gives it back, and waits on where it stood."""
    note = Paused(by) if paused else Resumed(by)
    for lane in list(lanes.held.lanes.values()):
        if lane.paused == paused:
            continue
        lanes.change(msgspec.structs.replace(lane, paused=paused), note)
        if paused:
            await lanes.take_slots_back(lane.id)


async def first_waiting(
    tx: Tx, action_ref: str, group_key: str | None, count: int
) -> list[ExecutionId]:
    """Some of those that wait, for a slot, for a worker or for their next attempt."""
    ids = await locking.of_action(tx, action_ref, group_key)
    return await tx.all(ExecutionId, _FIRST, lanes=ids, count=count) if ids else []


async def reprioritize(
    tx: Tx, terms: QueueTerms, execution: ExecutionId, priority: Priority, by: str, now: datetime
) -> Lanes:
    """It keeps its number, so within its new band it stands where it would have stood. `Conflict` once it has gone."""
    lanes = await lanes_of_executions(tx, [execution], terms, now)
    place = await tx.first(_Place, _PLACE, id=execution)
    resting = await tx.first(_Resting, _RESTING, id=execution) if place is None else None
    found = place or resting
    if found is None or (place is not None and place.state is State.HANDED):
        raise await _gone(tx, execution)
    await tx.execute(_BAND if place else _RESTING_BAND, id=execution, band=priority)
    await tx.execute(_PRIORITY, id=execution, band=priority, now=now)
    await locking.lock(tx, [found.lane], lanes.held)
    note = Reprioritized(execution, found.sequence or 0, found.band, priority, by)
    lanes.change(lanes.held.lanes[found.lane], note)
    await lanes.promote()
    return lanes


async def change_limit(
    tx: Tx, terms: QueueTerms, lane_id: LaneId, limit: int, why: str, now: datetime
) -> Lanes:
    """For a limit that follows its action: `why` is what it has seen."""
    lanes = await lanes_by_id(tx, [lane_id], terms, now)
    lane: Lane | None = lanes.held.lanes.get(lane_id)
    if lane is not None and lane.terms is not None and lane.terms.is_auto:
        note = LimitChanged(lane.max_concurrent, limit, why)
        lanes.change(msgspec.structs.replace(lane, max_concurrent=limit), note)
        await lanes.promote()
    return lanes


async def _gone(tx: Tx, execution: ExecutionId) -> AttuneError:
    """Between two looks it may have come back from a delay, or gone into one: then it is to be looked for again."""
    status = await tx.first(ExecutionStatus, _STATUS, id=execution)
    if status is None:
        return NotFound(f"There is no execution {execution}.", id=execution)
    if status in _WAITING:
        return Contention("The execution has changed its place meanwhile.")
    return Conflict(f"The execution {execution} no longer waits.", id=execution)
