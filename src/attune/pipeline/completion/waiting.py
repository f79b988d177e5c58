"""Ending what waits for a slot, a worker or its next attempt, for a reason that is told in its result."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.outbox import Outbox
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.queues.returning import drop
from attune.pipeline.queues.steps import lanes_of_executions
from attune.store.database import Tx

_S = ExecutionStatus

_BEFORE_HAND_OFF: Final = frozenset({_S.REQUESTED, _S.SCHEDULING})
_WAITING: Final = """
    SELECT execution FROM entry WHERE execution = ANY(:ids::bigint[]) AND state <> 'handed'
"""


async def end_waiting(
    tx: Tx,
    terms: QueueTerms,
    outbox: Outbox,
    reasons: Mapping[ExecutionId, str],
    status: ExecutionStatus,
    now: datetime,
) -> list[ExecutionId]:
    """Those of these that still wait end so; the slots that they held go to the next in line."""
    lanes = await lanes_of_executions(tx, reasons.keys(), terms, now)
    standing = await tx.all(ExecutionId, _WAITING, ids=sorted(reasons))
    waiting = standing + await drop(lanes, reasons.keys())
    for text in sorted({reasons[one] for one in waiting}):
        ids = [one for one in waiting if reasons[one] == text]
        for moved in await executions.end(
            tx, ids, status, _BEFORE_HAND_OFF, unrun_result(text), now
        ):
            outbox.moved(moved, _S.REQUESTED)
    await lanes.leave(standing)
    await lanes.save()
    outbox.hurry(lanes.promoted)
    return waiting
