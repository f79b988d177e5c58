"""What a worker was handed, read from the rows: the message that tells of it carries no parameters."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from attune.kernel.ids import ActionDefinitionId, ExecutionId, IdentityId, LaneId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.store.database import Tx
from attune.store.schema import execution_output

_SELECT: Final = """
    SELECT e.execution, e.lane, e.attempt, e.definition, x.action_ref, x.status, x.config, x.env_vars,
           x.rule_ref, x.trigger_ref, x.timeout_seconds, x.executor, x.permission_set_refs
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed' AND e.worker = :worker
"""
_THESE: Final = f"{_SELECT} AND e.execution = ANY(:ids::bigint[]) ORDER BY e.execution"
_HELD: Final = """
    SELECT e.execution, e.attempt, x.status = 'canceling' AS canceling
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed' AND e.worker = :worker
     ORDER BY e.band, e.enqueued_at, e.sequence
"""


class HandOff(msgspec.Struct, frozen=True, kw_only=True):
    execution: ExecutionId
    lane: LaneId
    attempt: int
    definition: ActionDefinitionId
    action_ref: str
    status: ExecutionStatus
    config: dict[str, Any]
    env_vars: dict[str, str] | None
    rule_ref: str | None
    trigger_ref: str | None
    timeout_seconds: float | None
    executor: IdentityId | None
    permission_set_refs: list[str] | None

    def __repr__(self) -> str:
        return f"HandOff(execution={self.execution}, attempt={self.attempt})"


class Holding(msgspec.Struct, frozen=True):
    """What the rows say that a worker holds."""

    execution: ExecutionId
    attempt: int
    canceling: bool


class Chunk(msgspec.Struct, frozen=True):
    """A piece of live output; `begins_at` counts bytes of UTF-8."""

    execution: ExecutionId
    stream: str
    attempt: int
    begins_at: int
    text: str


OUTPUT_TOPIC: Final = "execution_output"


async def hand_offs(tx: Tx, worker: WorkerId, ids: Sequence[ExecutionId]) -> list[HandOff]:
    """Those of these executions that are this worker's now; what was taken back meanwhile is left out."""
    return await tx.all(HandOff, _THESE, worker=worker, ids=ids)


async def holdings(tx: Tx, worker: WorkerId) -> list[Holding]:
    return await tx.all(Holding, _HELD, worker=worker)


async def keep_output(tx: Tx, chunks: Sequence[Chunk]) -> None:
    """For those who follow it. What is kept already, after a commit whose answer was lost, stays."""
    await tx.insert(execution_output, chunks, skip_existing=True)
    for execution in {chunk.execution for chunk in chunks}:
        tx.wake(OUTPUT_TOPIC, str(execution))
