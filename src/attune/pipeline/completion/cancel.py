"""Cancelling, in every state: what waits ends here, what a worker has ends there."""

from datetime import datetime
from typing import Final

import msgspec

from attune.bus.topology import worker_queue_name
from attune.kernel.errors import Conflict, Contention
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionCancel, MessageType
from attune.kernel.statuses import TERMINAL, ExecutionStatus, sources_of
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.executions.model import Execution
from attune.pipeline.outbox import Outbox
from attune.pipeline.queues import returning
from attune.pipeline.queues.model import QueueTerms, State
from attune.pipeline.queues.steps import lanes_of_executions
from attune.store.database import Tx

_S = ExecutionStatus

_ENTRY: Final = "SELECT state, worker, attempt FROM entry WHERE execution = :id FOR UPDATE"
_BEFORE_IT_STARTED: Final = "The execution was cancelled before it started."


class _Place(msgspec.Struct, frozen=True):
    state: State
    worker: WorkerId | None
    attempt: int


async def cancel(
    tx: Tx, terms: QueueTerms, outbox: Outbox, execution_id: ExecutionId, now: datetime
) -> Execution:
    """The execution as it is after the wish. `Conflict` for one that has ended; asking twice is fine."""
    before = await executions.get_execution(tx, execution_id)
    lanes = await lanes_of_executions(tx, [execution_id], terms, now)
    place = await tx.first(_Place, _ENTRY, id=execution_id)
    if place is None:
        rested = await returning.drop(lanes, [execution_id])
        before = await executions.get_execution(tx, execution_id)
        if not rested and before.status not in TERMINAL:
            raise Contention("The execution has come back to its queue meanwhile.")
    if before.status in TERMINAL:
        raise Conflict(
            f"The execution {execution_id} is {before.status} already.", status=before.status
        )
    if place is not None and place.state is State.HANDED:
        await _ask_worker(tx, outbox, before, place, now)
    else:
        await _end_here(tx, outbox, execution_id, now)
        await lanes.leave([execution_id])
        outbox.hurry(lanes.promoted)
    await lanes.save()
    return await executions.get_execution(tx, execution_id)


async def _end_here(tx: Tx, outbox: Outbox, execution_id: ExecutionId, now: datetime) -> None:
    """Nobody has it: the executor's own states."""
    sources = sources_of(_S.CANCELLED) & {_S.REQUESTED, _S.SCHEDULING}
    result = unrun_result(_BEFORE_IT_STARTED)
    for moved in await executions.end(tx, [execution_id], _S.CANCELLED, sources, result, now):
        outbox.moved(moved, _S.REQUESTED)


async def _ask_worker(
    tx: Tx, outbox: Outbox, before: Execution, place: _Place, now: datetime
) -> None:
    """The worker reads the wish from the row at the latest; the message only hurries it."""
    sources = sources_of(_S.CANCELING)
    for moved in await executions.move(tx, [before.id], _S.CANCELING, sources, now):
        outbox.moved(moved, before.status)
    if place.worker is not None:
        item = ExecutionCancel(execution_id=before.id, attempt=place.attempt)
        outbox.order(MessageType.EXECUTION_CANCEL, item, to=worker_queue_name(place.worker))
