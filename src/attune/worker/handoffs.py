"""What a worker was handed, read from the rows: the message that tells of it carries no parameters."""

from collections.abc import Sequence
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.workers.model import Worker
from attune.store.database import Tx
from attune.store.schema import execution_output

# Of two processes under one name, the rows are the later one's: also those that it was handed since.
_OWN: Final = """
      e.state = 'handed' AND e.worker = :worker
       AND EXISTS (SELECT 1 FROM worker w WHERE w.id = e.worker AND w.incarnation = :incarnation)
"""
_SELECT: Final = f"""
    SELECT e.execution, e.lane, e.attempt, e.definition, x.action, x.action_ref, x.status, x.config, x.env_vars,
           x.rule_ref, x.trigger_ref, x.timeout_seconds, x.executor, x.permission_set_refs, e.lease_expires_at
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE {_OWN}
"""  # noqa: S608 - the condition is our own
_THESE: Final = f"{_SELECT} AND e.execution = ANY(:ids::bigint[]) ORDER BY e.execution"
_HELD: Final = f"""
    SELECT e.execution, e.attempt, x.status
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE {_OWN}
     ORDER BY e.band, e.enqueued_at, e.sequence
"""  # noqa: S608 - the condition is our own
_ATTEMPTS: Final = """
    SELECT execution, attempt FROM entry WHERE state = 'handed' AND execution = ANY(:ids::bigint[])
"""


class Holding(msgspec.Struct, frozen=True):
    """What the rows say that a worker holds."""

    execution: ExecutionId
    attempt: int
    status: ExecutionStatus

    @property
    def key(self) -> tuple[ExecutionId, int]:
        return self.execution, self.attempt


class Chunk(msgspec.Struct, frozen=True):
    """A piece of live output; `begins_at` counts bytes of UTF-8."""

    execution: ExecutionId
    stream: str
    attempt: int
    begins_at: int
    text: str


OUTPUT_TOPIC: Final = "execution_output"


async def hand_offs(tx: Tx, worker: Worker, ids: Sequence[ExecutionId]) -> list[HandOff]:
    """Those of these executions that are this worker's now; what was taken back meanwhile is left out."""
    own = worker.incarnation
    return await tx.all(HandOff, _THESE, worker=worker.id, incarnation=own, ids=ids)


async def holdings(tx: Tx, worker: Worker) -> list[Holding]:
    return await tx.all(Holding, _HELD, worker=worker.id, incarnation=worker.incarnation)


class _Attempt(msgspec.Struct, frozen=True):
    execution: ExecutionId
    attempt: int


async def keep_output(tx: Tx, chunks: Sequence[Chunk]) -> None:
    """For those who follow it. What is kept already, after a commit whose answer was lost, stays; what comes
    of an attempt that counts no more is left out, because nobody would ever remove it."""
    ids = sorted({chunk.execution for chunk in chunks})
    found = await tx.all(_Attempt, _ATTEMPTS, ids=ids)
    counting = {(one.execution, one.attempt) for one in found}
    kept = [chunk for chunk in chunks if (chunk.execution, chunk.attempt) in counting]
    await tx.insert(execution_output, kept, skip_existing=True)
    for execution in {chunk.execution for chunk in kept}:
        tx.wake(OUTPUT_TOPIC, str(execution))
