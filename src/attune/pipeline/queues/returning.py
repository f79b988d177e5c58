"""Between two attempts: out of the lane with the slot freed, and back into it when the delay is over.

Who waits for a time stands in no line and is in nobody's way; its row in `delay` remembers the place. So a delay may
be as long as it likes, and outlives every process.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.catalog.placement import Needs
from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.gates import first_blocker
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues import locking
from attune.pipeline.queues.decisions import Delayed, Dropped, Item, Returned
from attune.pipeline.queues.model import Entry, Lane, Pause, State
from attune.pipeline.queues.steps import Lanes
from attune.store import schema
from attune.store.database import Tx

DELAYS: Final = "delays"

# The names in these statements are those of our own structs.
_OUT: Final = f"""
    DELETE FROM entry WHERE execution = ANY(:ids::bigint[]) RETURNING {", ".join(Entry.__struct_fields__)}
"""  # noqa: S608
_DROP: Final = """
    DELETE FROM delay WHERE execution = ANY(:ids::bigint[]) RETURNING execution, lane, band
"""
_DUE: Final = "SELECT execution FROM delay WHERE due_at <= :now ORDER BY due_at LIMIT :count"
_NEXT: Final = "SELECT min(due_at) FROM delay"


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """The row. Without a sequence it comes back behind all others."""

    execution: ExecutionId
    lane: LaneId
    band: Priority
    sequence: int | None
    enqueued_at: datetime
    attempt: int
    retries: int
    losses: int
    due_at: datetime
    definition: ActionDefinitionId
    needs: Needs | None


_BACK: Final = f"""
    DELETE FROM delay WHERE execution = ANY(:ids::bigint[]) RETURNING {", ".join(Delay.__struct_fields__)}
"""  # noqa: S608


class _Dropped(msgspec.Struct, frozen=True):
    execution: ExecutionId
    lane: LaneId
    band: Priority


async def step_out(lanes: Lanes, pauses: Mapping[ExecutionId, Pause]) -> dict[ExecutionId, LaneId]:
    """Their attempts have failed and are followed by others; the lanes that they left.

    A worker may not know that its execution was moved to another lane, so that one is locked here. The slots are
    free; who gets them, `promote` says.
    """
    gone = await lanes.tx.all(Entry, _OUT, ids=sorted(pauses))
    await locking.lock(lanes.tx, {one.lane for one in gone}, lanes.held)
    for lane_id in sorted({one.lane for one in gone}):
        some = [one for one in gone if one.lane == lane_id]
        await _free(lanes, lanes.held.lanes[lane_id], some, pauses)
    await lanes.tx.insert(schema.delay, [_delay(one, pauses[one.execution]) for one in gone])
    lanes.tx.wake(DELAYS)
    return {one.execution: one.lane for one in gone}


async def _free(
    lanes: Lanes, lane: Lane, gone: Sequence[Entry], pauses: Mapping[ExecutionId, Pause]
) -> None:
    items: list[Item] = [
        Delayed(one.execution, one.sequence, one.band, pauses[one.execution].until) for one in gone
    ]
    lanes.change(msgspec.structs.replace(lane, active_count=lane.active_count - len(gone)), *items)
    lanes.count(lane, active=-len(gone))
    if lane.rate is not None:
        await lanes.rates.ended({one.execution: pauses[one.execution].began for one in gone})


def _delay(entry: Entry, pause: Pause) -> Delay:
    needs = entry.needs or Needs()
    worker = () if entry.worker is None else (entry.worker,)
    avoid = tuple(dict.fromkeys((*needs.avoid, *worker)))
    return Delay(
        execution=entry.execution,
        lane=entry.lane,
        band=entry.band,
        sequence=entry.sequence if pause.keeps_place else None,
        enqueued_at=entry.enqueued_at,
        attempt=entry.attempt + 1,
        retries=entry.retries + 1,
        losses=entry.losses,
        due_at=pause.until,
        definition=entry.definition,
        needs=msgspec.structs.replace(needs, avoid=avoid),
    )


async def step_in(lanes: Lanes, places: Mapping[ExecutionId, LaneId]) -> list[ExecutionId]:
    """Those of these whose delay is still there, back into the lanes that were found for them."""
    back = await lanes.tx.all(Delay, _BACK, ids=sorted(places))
    back.sort(key=lambda one: (one.due_at, one.execution))
    entries: list[Entry] = []
    for one in back:
        lane = lanes.held.lanes[places[one.execution]]
        entry = await _entry(lanes, lane, one)
        lanes.change(_longer(lane, entry), _returned(one, entry))
        entries.append(entry)
    await lanes.tx.insert(schema.entry, entries)
    await lanes.promote()
    return [one.execution for one in back]


def _returned(back: Delay, entry: Entry) -> Returned:
    origin = None if back.lane == entry.lane else back.lane
    reason = entry.reason or GateName.TURN
    return Returned(back.execution, entry.sequence, back.band, reason, origin)


async def _entry(lanes: Lanes, lane: Lane, back: Delay) -> Entry:
    """Its old place, if it comes back to the lane that it left; else a new one. Age goes with the place."""
    keeps = back.sequence is not None and back.lane == lane.id
    blocker = first_blocker(await lanes.gates(lane))
    return Entry(
        execution=back.execution,
        lane=lane.id,
        band=back.band,
        sequence=back.sequence if keeps and back.sequence is not None else lane.next_sequence,
        state=State.QUEUED,
        reason=blocker.name if blocker else GateName.TURN,
        enqueued_at=back.enqueued_at if keeps else max(lanes.now, lane.last_enqueued_at),
        attempt=back.attempt,
        retries=back.retries,
        losses=back.losses,
        due_at=back.due_at,
        definition=back.definition,
        needs=back.needs,
    )


def _longer(lane: Lane, entry: Entry) -> Lane:
    return msgspec.structs.replace(
        lane,
        queue_length=lane.queue_length + 1,
        next_sequence=max(lane.next_sequence, entry.sequence + 1),
        last_enqueued_at=max(lane.last_enqueued_at, entry.enqueued_at),
    )


async def due(tx: Tx, now: datetime, count: int) -> list[ExecutionId]:
    """Some of those whose delay is over, the longest over first."""
    return await tx.all(ExecutionId, _DUE, now=now, count=count)


async def next_due(tx: Tx) -> datetime | None:
    return await tx.first(datetime, _NEXT)


async def drop(lanes: Lanes, ids: Collection[ExecutionId]) -> list[ExecutionId]:
    """Those of these that rested between two attempts; they come back no more, and count as gone where they stood."""
    gone = await lanes.tx.all(_Dropped, _DROP, ids=sorted(ids))
    await locking.lock(lanes.tx, {one.lane for one in gone}, lanes.held)
    for one in gone:
        lane = lanes.held.lanes[one.lane]
        after = msgspec.structs.replace(lane, total_completed=lane.total_completed + 1)
        lanes.change(after, Dropped(one.execution, one.band))
    return [one.execution for one in gone]
