"""What must be true of the queues at every moment: the decision log proves order and limits, and counters are counts."""

from datetime import datetime
from typing import Final

import msgspec

from attune.pipeline.queues.decisions import Decision
from attune.pipeline.queues.verify import Replay
from harness.control_plane import ControlPlane

_DECISIONS: Final = """
    SELECT lane, number, at, active_before, active_after, queue_length, max_concurrent, reason, items
      FROM decision ORDER BY lane, number
"""
_LANES: Final = """
    SELECT l.id, l.action_ref, l.group_key, l.paused, l.queue_length, l.active_count, l.total_enqueued,
           l.total_completed, l.max_concurrent, l.pools, l.reason, l.retry_at, l.next_decision,
           (SELECT count(*) FROM entry e WHERE e.lane = l.id AND e.state = 'queued') AS queued,
           (SELECT count(*) FROM entry e WHERE e.lane = l.id AND e.state <> 'queued') AS holding
      FROM lane l ORDER BY l.action_ref, l.group_key
"""
_POOLS: Final = "SELECT id, active_count FROM pool ORDER BY id"
_LOST: Final = """
    SELECT count(*) FROM execution x
     WHERE x.status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling')
       AND (SELECT count(*) FROM entry e WHERE e.execution = x.id)
           + (SELECT count(*) FROM delay d WHERE d.execution = x.id) <> 1
"""
_ENDED: Final = """
    SELECT count(*) FROM entry e JOIN execution x ON x.id = e.execution
     WHERE x.status IN ('completed', 'failed', 'cancelled', 'timeout', 'abandoned')
"""


class LaneRow(msgspec.Struct, frozen=True, kw_only=True):
    """`queued` and `holding` are counted from the entries."""

    id: int
    action_ref: str
    group_key: str
    paused: bool
    queue_length: int
    active_count: int
    total_enqueued: int
    total_completed: int
    max_concurrent: int | None
    pools: tuple[int, ...] | None
    reason: str | None
    retry_at: datetime | None
    next_decision: int
    queued: int
    holding: int


class _Pool(msgspec.Struct, frozen=True):
    id: int
    active_count: int


async def lane_rows(plane: ControlPlane) -> list[LaneRow]:
    return await plane.values(LaneRow, _LANES)


async def prove(plane: ControlPlane) -> None:
    """Fails with the first thing that is not so."""
    await _replay(plane)
    lanes = await lane_rows(plane)
    for lane in lanes:
        assert (lane.queue_length, lane.active_count) == (lane.queued, lane.holding), lane
        assert (lane.reason is None) == (lane.queue_length == 0), lane
    await _pools_are_counted(plane, lanes)
    assert await plane.value(int, _LOST) == 0, "an execution that has not ended has no place"
    assert await plane.value(int, _ENDED) == 0, "an execution that has ended holds a place"


async def _replay(plane: ControlPlane) -> None:
    replay = Replay()
    for row in await plane.values(Decision, _DECISIONS):
        replay.feed(row)
    proof = replay.proof()
    assert proof.holds, proof.violation
    assert proof.partial_lanes == 0


async def _pools_are_counted(plane: ControlPlane, lanes: list[LaneRow]) -> None:
    for pool in await plane.values(_Pool, _POOLS):
        held = sum(lane.holding for lane in lanes if pool.id in (lane.pools or ()))
        assert pool.active_count == held, pool
