"""Attempts whose time is over: not begun within their lease, or not ended within their limit.

Only leases and deadlines count, never the age of a row, and both are asked again under the locks: an attempt that has
begun or ended meanwhile is left alone, so any number of executors may look.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from attune.bus.topology import worker_queue_name
from attune.catalog.retrying import Cause
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionCancel, MessageType
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Verdict
from attune.pipeline.completion.retrying import retry
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.outbox import Outbox
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.queues.steps import lanes_of_executions
from attune.pipeline.workers.history import ALERTS, Happened, WorkerEvent, note
from attune.store.database import Tx

_S = ExecutionStatus

# What a worker may take on top of an action's limit to end it with all its children and to say so.
SLACK: Final = timedelta(seconds=30)

_OVERDUE: Final = """
    SELECT e.execution, e.attempt, e.worker, x.status, x.started_at, x.timeout_seconds, e.lease_expires_at
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed'
"""
_UNBEGUN: Final = f"{_OVERDUE} AND x.status = 'scheduled' AND e.lease_expires_at <= :now"
_UNENDED: Final = f"""{_OVERDUE}
       AND x.status IN ('running', 'canceling') AND x.timeout_seconds IS NOT NULL
       AND x.started_at <= :now
"""
_THESE: Final = " AND e.execution = ANY(:ids::bigint[])"


class Monitor(StrEnum):
    """Who found it out, as the result tells it."""

    SCHEDULED_TIMEOUT = "execution_timeout_monitor"
    DEAD_LETTERS = "dead_letter_handler"
    RUN_DEADLINE = "run_deadline_monitor"


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    execution: ExecutionId
    attempt: int
    worker: WorkerId
    status: ExecutionStatus
    started_at: datetime | None
    timeout_seconds: float | None
    lease_expires_at: datetime | None

    def is_over(self, now: datetime) -> bool:
        """Whether a started one has had all its time; one that has not started was asked for by its lease."""
        if self.started_at is None or self.timeout_seconds is None:
            return True
        return self.started_at + timedelta(seconds=self.timeout_seconds) + SLACK <= now


_TEXTS: Final[Mapping[Monitor, str]] = {
    Monitor.SCHEDULED_TIMEOUT: "Execution timeout: worker did not pick up task within timeout",
    Monitor.DEAD_LETTERS: "Message expired in worker queue (worker unavailable)",
    Monitor.RUN_DEADLINE: "The action timed out after {0:g} s, and its worker did not end it.",
}


async def unbegun(tx: Tx, now: datetime) -> list[Overdue]:
    """Handed to a worker and not begun, although the lease is over."""
    return await tx.all(Overdue, _UNBEGUN, now=now)


async def unended(tx: Tx, now: datetime) -> list[Overdue]:
    """Begun, and not ended although the limit and the worker's time to say so are over."""
    return [one for one in await tx.all(Overdue, _UNENDED, now=now) if one.is_over(now)]


async def end_overdue(
    tx: Tx,
    terms: QueueTerms,
    outbox: Outbox,
    monitor: Monitor,
    attempts: Mapping[ExecutionId, int],
    now: datetime,
) -> list[ExecutionId]:
    """Those of these attempts that are still overdue end, or are followed by another; which they were."""
    lanes = await lanes_of_executions(tx, attempts.keys(), terms, now)
    found = await _still(tx, monitor, attempts, now)
    sources = {_S.RUNNING, _S.CANCELING} if monitor is Monitor.RUN_DEADLINE else {_S.SCHEDULED}
    verdicts = [_verdict(one, monitor) for one in found]
    again = await retry(lanes, outbox, verdicts, sources - {_S.CANCELING}, now)
    last = [one for one in found if one.execution not in again]
    ended = await _end(tx, outbox, last, monitor, sources, now)
    await lanes.leave(ended, {one.execution: one.started_at for one in last})
    await lanes.save()
    outbox.hurry(lanes.promoted)
    settled = [one for one in found if one.execution in again or one.execution in ended]
    await _tell(tx, outbox, settled, monitor, now)
    return [one.execution for one in settled]


async def _still(
    tx: Tx, monitor: Monitor, attempts: Mapping[ExecutionId, int], now: datetime
) -> list[Overdue]:
    sql = _UNENDED if monitor is Monitor.RUN_DEADLINE else _UNBEGUN
    found = await tx.all(Overdue, sql + _THESE, now=now, ids=sorted(attempts))
    return [one for one in found if attempts[one.execution] == one.attempt and one.is_over(now)]


def _text(one: Overdue, monitor: Monitor) -> str:
    return _TEXTS[monitor].format(one.timeout_seconds or 0)


def _verdict(one: Overdue, monitor: Monitor) -> Verdict:
    ran = monitor is Monitor.RUN_DEADLINE
    return Verdict(
        execution=one.execution,
        attempt=one.attempt,
        status=_S.TIMEOUT if ran else _S.FAILED,
        cause=Cause.TIMEOUT if ran else Cause.NOT_STARTED,
        error=_text(one, monitor),
        started_at=one.started_at,
    )


async def _end(
    tx: Tx,
    outbox: Outbox,
    found: Collection[Overdue],
    monitor: Monitor,
    sources: Collection[ExecutionStatus],
    now: datetime,
) -> set[ExecutionId]:
    """One whose worker has spoken in the last moment is not moved."""
    status = _S.TIMEOUT if monitor is Monitor.RUN_DEADLINE else _S.FAILED
    was = {one.execution: one for one in found}
    ended: set[ExecutionId] = set()
    for text in sorted({_text(one, monitor) for one in found}):
        ids = [one.execution for one in found if _text(one, monitor) == text]
        result: dict[str, Any] = {**unrun_result(text), "failed_by": monitor.value}
        for moved in await executions.end(tx, ids, status, sources, result, now):
            outbox.moved(moved, was[moved.id].status)
            ended.add(moved.id)
    return ended


async def _tell(
    tx: Tx, outbox: Outbox, settled: Collection[Overdue], monitor: Monitor, now: datetime
) -> None:
    """People by the worker's history; the worker itself, should it still be at it, by a wish to cancel."""
    ran = monitor is Monitor.RUN_DEADLINE
    event = WorkerEvent.OVERDUE if ran else WorkerEvent.NOT_STARTED
    rows = [
        Happened(
            worker=one.worker,
            event=event,
            at=now,
            execution=one.execution,
            text=_text(one, monitor),
        )
        for one in settled
    ]
    await note(tx, rows)
    for one in settled:
        item = ExecutionCancel(execution_id=one.execution, attempt=one.attempt)
        outbox.order(MessageType.EXECUTION_CANCEL, item, to=worker_queue_name(one.worker))
    if settled:
        tx.wake(ALERTS)
