"""Joining a lane, being given a slot, leaving: all under the lane's lock, so order is commit order.

Lanes are locked before workers and executions, by id, in every step.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Execution
from attune.pipeline.queues.decide import joined, left, promoted, room
from attune.pipeline.queues.model import Entry, Lane, State
from attune.store import schema
from attune.store.database import Tx

_LANE: Final = """
    SELECT l.id, l.action_ref, l.group_key, l.paused, l.next_sequence, l.queue_length, l.active_count,
           l.total_enqueued, l.total_completed, l.last_enqueued_at,
           (SELECT p.concurrency_limit FROM policy p
             WHERE p.scope_type = 'action' AND p.scope_ref = l.action_ref AND p.enabled
               AND p.concurrency_limit IS NOT NULL
             ORDER BY p.priority DESC, p.id LIMIT 1) AS max_concurrent
      FROM lane l
"""
_BY_REFS: Final = f"{_LANE} WHERE l.action_ref = ANY(:refs::text[]) ORDER BY l.id FOR UPDATE OF l"
_BY_IDS: Final = f"{_LANE} WHERE l.id = ANY(:ids::bigint[]) ORDER BY l.id FOR UPDATE OF l"
_WITH_WAITING: Final = "SELECT id FROM lane WHERE queue_length > 0 ORDER BY id"
_LANES_OF: Final = "SELECT DISTINCT lane FROM entry WHERE execution = ANY(:ids::bigint[])"
_SAVE: Final = """
    UPDATE lane SET next_sequence = v.next_sequence, queue_length = v.queue_length,
           active_count = v.active_count, total_enqueued = v.total_enqueued,
           total_completed = v.total_completed, last_enqueued_at = v.last_enqueued_at, updated = :now
      FROM ROWS(:lanes AS v(id bigint, next_sequence bigint, queue_length int, active_count int,
                            total_enqueued bigint, total_completed bigint, last_enqueued_at timestamptz))
     WHERE lane.id = v.id
"""
_PROMOTE: Final = """
    UPDATE entry SET state = 'ready', reason = 'worker'
     WHERE execution = ANY(ARRAY(SELECT execution FROM entry
                                  WHERE lane = :lane AND state = 'queued'
                                  ORDER BY band, sequence LIMIT :free))
    RETURNING execution
"""
_LEAVE: Final = """
    DELETE FROM entry WHERE execution = ANY(:ids::bigint[]) RETURNING execution, lane, state
"""
_ALL: Final = 2**31 - 1


class _NewLane(msgspec.Struct, frozen=True, kw_only=True):
    id: LaneId
    action_ref: str
    last_enqueued_at: datetime
    created: datetime
    updated: datetime
    group_key: str = ""
    paused: bool = False
    next_sequence: int = 1
    queue_length: int = 0
    active_count: int = 0
    total_enqueued: int = 0
    total_completed: int = 0


class _Left(msgspec.Struct, frozen=True):
    execution: ExecutionId
    lane: LaneId
    state: State


class Lanes:
    """The lanes that a transaction holds locked. What changes is written once, by `save`.

    `promoted` are those that had waited and were given a slot meanwhile.
    """

    def __init__(self, tx: Tx, lanes: Iterable[Lane], now: datetime) -> None:
        self._tx = tx
        self._now = now
        self._lanes = {lane.id: lane for lane in lanes}
        self._changed: set[LaneId] = set()
        self.promoted: set[ExecutionId] = set()

    async def join(self, executions: Sequence[Execution]) -> list[Entry]:
        """Each to the end of its action's lane, in the given order."""
        by_ref: dict[str, list[Execution]] = defaultdict(list)
        for one in executions:
            by_ref[one.action_ref].append(one)
        found: list[Entry] = []
        for lane in list(self._lanes.values()):
            if lane.action_ref in by_ref:
                after, entries = joined(lane, by_ref[lane.action_ref], self._now)
                self._set(after)
                found += entries
        await self._tx.insert(schema.entry, found)
        await self.promote()
        return found

    async def leave(self, ids: Collection[ExecutionId]) -> set[ExecutionId]:
        """Free whatever these held, and give it to the next in line; those that were there."""
        gone = await self._tx.all(_Left, _LEAVE, ids=sorted(ids)) if ids else []
        by_lane: dict[LaneId, list[State]] = defaultdict(list)
        for one in gone:
            by_lane[one.lane].append(one.state)
        for lane_id, states in by_lane.items():
            self._set(left(self._lanes[lane_id], states))
        await self.promote()
        return {one.execution for one in gone}

    async def promote(self) -> None:
        """Give every free slot to the head of its lane."""
        for lane in list(self._lanes.values()):
            free = room(lane)
            if lane.queue_length == 0 or free == 0:
                continue
            limit = _ALL if free is None else free
            given = await self._tx.all(ExecutionId, _PROMOTE, lane=lane.id, free=limit)
            if given:
                self._set(promoted(lane, len(given)))
                self.promoted.update(given)

    async def save(self) -> None:
        if not self._changed:
            return
        changed = [self._lanes[lane_id] for lane_id in sorted(self._changed)]
        await self._tx.execute(_SAVE, lanes=[_saved(lane) for lane in changed], now=self._now)
        self._changed.clear()

    def _set(self, lane: Lane) -> None:
        self._lanes[lane.id] = lane
        self._changed.add(lane.id)


def _saved(lane: Lane) -> tuple[object, ...]:
    return (
        lane.id,
        lane.next_sequence,
        lane.queue_length,
        lane.active_count,
        lane.total_enqueued,
        lane.total_completed,
        lane.last_enqueued_at,
    )


async def lanes_of_actions(tx: Tx, refs: Collection[str], now: datetime) -> Lanes:
    """Lock the lanes of these actions, made if need be."""
    wanted = sorted(refs)
    found = await tx.all(Lane, _BY_REFS, refs=wanted)
    missing = sorted(set(wanted) - {lane.action_ref for lane in found})
    if missing:
        ids = await tx.next_ids(schema.lane, len(missing))
        new = [
            _NewLane(id=LaneId(i), action_ref=ref, last_enqueued_at=now, created=now, updated=now)
            for i, ref in zip(ids, missing, strict=True)
        ]
        await tx.insert(schema.lane, new, skip_existing=True)
        found = await tx.all(Lane, _BY_REFS, refs=wanted)
    return Lanes(tx, found, now)


async def lanes_by_id(tx: Tx, ids: Collection[LaneId], now: datetime) -> Lanes:
    found = await tx.all(Lane, _BY_IDS, ids=sorted(ids)) if ids else []
    return Lanes(tx, found, now)


async def lanes_of_executions(tx: Tx, ids: Collection[ExecutionId], now: datetime) -> Lanes:
    """Lock the lanes in which these stand. An entry never changes its lane, so looking first is safe."""
    return await lanes_by_id(tx, await tx.all(LaneId, _LANES_OF, ids=sorted(ids)), now)


async def lanes_with_waiting(tx: Tx, now: datetime) -> Lanes:
    return await lanes_by_id(tx, await tx.all(LaneId, _WITH_WAITING), now)
