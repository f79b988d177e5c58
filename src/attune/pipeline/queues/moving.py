"""Executions that are grouped otherwise than before go to the lanes of their groups, in the old order."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from attune.kernel.ids import ExecutionId, IdentityId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.book import Binding
from attune.pipeline.policies.decide import (
    group_of,
)
from attune.pipeline.queues.decisions import Came, Went
from attune.pipeline.queues.making import make_lanes
from attune.pipeline.queues.model import State
from attune.pipeline.queues.steps import Lanes

_STANDING: Final = """
    SELECT e.execution, e.lane, e.band, e.sequence, e.state, e.enqueued_at, x.config, x.executor
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.lane = ANY(:lanes::bigint[]) ORDER BY e.enqueued_at, e.lane, e.sequence
"""
_MOVE: Final = """
    UPDATE entry SET lane = v.lane, sequence = v.sequence
      FROM ROWS(:moved AS v(execution bigint, lane bigint, sequence bigint))
     WHERE entry.execution = v.execution
"""


class _Standing(msgspec.Struct, frozen=True):
    execution: ExecutionId
    lane: LaneId
    band: Priority
    sequence: int
    state: State
    enqueued_at: datetime
    config: dict[str, Any]
    executor: IdentityId | None

    @property
    def held(self) -> bool:
        return self.state is not State.QUEUED


async def move(lanes: Lanes, version: int, binding: Binding, astray: Sequence[LaneId]) -> None:
    """Everyone who stands in a lane that is grouped otherwise goes to the lane of its group, in the old order."""
    standing = await lanes.tx.all(_Standing, _STANDING, lanes=astray) if astray else []
    if not standing:
        return
    groups = {
        one.execution: group_of(binding.policy, one.config, one.executor, binding.secrets)
        for one in standing
    }
    known = {e.group_key for e in lanes.held.lanes.values() if e.action_ref == binding.action_ref}
    if missing := set(groups.values()) - known:
        await make_lanes(lanes, version, binding, missing)
    targets = {
        lane.group_key: lane.id
        for lane in lanes.held.lanes.values()
        if lane.action_ref == binding.action_ref
    }
    moved = [_move_one(lanes, one, targets[groups[one.execution]]) for one in standing]
    await lanes.tx.execute(_MOVE, moved=moved)


def _move_one(lanes: Lanes, one: _Standing, target: LaneId) -> tuple[ExecutionId, LaneId, int]:
    """A slot goes with whoever holds it; the counts of both lanes and of their pools follow."""
    old, new = lanes.held.lanes[one.lane], lanes.held.lanes[target]
    held, waits = int(one.held), int(not one.held)
    lanes.change(
        msgspec.structs.replace(
            old, active_count=old.active_count - held, queue_length=old.queue_length - waits
        ),
        Went(one.execution, one.sequence, one.band, one.held, target),
    )
    lanes.count(old, active=-held)
    sequence = new.next_sequence
    lanes.change(
        msgspec.structs.replace(
            new,
            next_sequence=sequence + 1,
            active_count=new.active_count + held,
            queue_length=new.queue_length + waits,
            last_enqueued_at=max(new.last_enqueued_at, one.enqueued_at),
        ),
        Came(one.execution, sequence, one.band, one.held),
    )
    lanes.count(new, active=held)
    return one.execution, target, sequence
