"""The end of executions: written once, under the fence, with the slot given on in the same transaction."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Final

import msgspec

from attune.catalog.retrying import Cause
from attune.kernel.ids import ActionId, ExecutionId, WorkerId
from attune.kernel.messages import ExecutionCompleted, MessageType
from attune.kernel.statuses import ExecutionStatus, one_of, sources_of, sources_through
from attune.pipeline.completion.model import Completed, Ended, Started, Told, Verdict
from attune.pipeline.completion.retrying import retry
from attune.pipeline.executions.decide import failure_word
from attune.pipeline.executions.outputs import forget_output
from attune.pipeline.outbox import Moved, Outbox
from attune.pipeline.queues.locking import Locked
from attune.pipeline.queues.rates import tell_starts
from attune.pipeline.queues.steps import Attempt, Lanes
from attune.pipeline.scheduling.line import Standing, standing_of
from attune.pipeline.scheduling.setbacks import AttemptEnd
from attune.pipeline.scheduling.steps import Scheduler
from attune.store.database import Answer, Tx

_S = ExecutionStatus

_RUNNING: Final = """
    UPDATE execution SET status = 'running', started_at = v.started_at, updated = v.started_at
      FROM ROWS(:started AS v(id bigint, attempt int, started_at timestamptz))
     WHERE execution.id = v.id AND execution.attempt = v.attempt AND execution.status = 'scheduled'
    RETURNING execution.id, execution.action, execution.action_ref, execution.attempt, execution.status
"""
# Of those whose entries have just left, so that their rows are locked and known to be as they have to be. The sources
# stand in the text: the words are our own, and a list that is sent has to be read each time.
_END: Final = """
    UPDATE execution SET status = :status, failure = :failure, result = v.result,
           started_at = v.started_at, worker = :worker, updated = :now
      FROM ROWS(:ended AS v(id bigint, attempt int, result jsonb, started_at timestamptz))
     WHERE execution.id = v.id AND execution.attempt = v.attempt AND {sources}
"""
_STILL: Final = """
    SELECT x.id FROM execution x
      JOIN ROWS(:attempts AS v(id bigint, attempt int)) ON x.id = v.id AND x.attempt = v.attempt
     WHERE x.status IN ('running', 'canceling')
"""
_CAUSES: Final = {_S.FAILED: Cause.FAILED, _S.TIMEOUT: Cause.TIMEOUT}


class _Result(msgspec.Struct, frozen=True):
    """What of a result decides whether there is another attempt."""

    exit_code: int | None = None
    error: str | None = None


@cache
def _sources(status: ExecutionStatus) -> frozenset[ExecutionStatus]:
    """A short action is never seen to run: its start and its end are one write."""
    passes = _S.RUNNING in sources_of(status)
    return sources_through(_S.RUNNING, status) if passes else sources_of(status)


@cache
def _end_as(status: ExecutionStatus) -> str:
    return _END.format(sources=one_of("execution.status", _sources(status)))


async def report_running(tx: Tx, outbox: Outbox, started: Sequence[Started]) -> Told:
    """Tell that attempts run. One that was taken back, or is to be cancelled, stays as it is."""
    rows = [(one.execution, one.attempt, one.started_at) for one in started]
    moved = await tx.all(Moved, _RUNNING, started=rows)
    began = {one.execution: one.started_at for one in started}
    for one in moved:
        outbox.moved(one, _S.SCHEDULED, started_at=began[one.id], updated=began[one.id])
    await tell_starts(tx, {one.id: began[one.id] for one in moved})
    if len(moved) == len(started):
        return Told(len(moved))
    attempts = [(one.execution, one.attempt) for one in started]
    still = await tx.all(ExecutionId, _STILL, attempts=attempts)
    return Told(len(moved), frozenset(began) - set(still))


async def complete(
    tx: Tx,
    scheduler: Scheduler,
    outbox: Outbox,
    worker: WorkerId,
    ended: Sequence[Ended],
    now: datetime,
) -> Completed:
    """End these, free their slots, admit the next in line and hand this worker as much as it has room for.

    Those that failed and have retries left do not end: they give their slot on, and come back for another attempt.
    """
    lanes = Lanes(tx, Locked(), scheduler.terms.queue, now)
    await lanes.ask({one.lane for one in ended}, scheduler.loners)
    again = await _retry(lanes, outbox, _verdicts(ended), now)
    last = {one.key: one for one in ended if one.execution not in again}
    standing = await standing_of(tx, worker, now)
    await lanes.look_ahead(Counter(one.lane for one in last.values()))
    left = await lanes.end_attempts(_by_sources(last.values()))
    refs = {execution: ref for (execution, _), ref in left.items()}
    refs |= {one.id: one.action_ref for one in again.values()}
    ends = _attempt_ends(ended, refs)
    await scheduler.setbacks.note_ends(tx, worker, ends, scheduler.terms, now)
    await forget_output(tx, [one.execution for one in ended if one.chatty])
    after = _after(standing, len(left), ends)
    own = await scheduler.assign_to(tx, after, len(refs), outbox, now, lanes.unwritten.values())
    handed = own.given.executions
    lanes.handed_over(handed)
    outbox.is_busy = bool(handed)
    await _end(tx, worker, [last[one] for one in left], now)
    for one, ref in left.items():
        _tell(outbox, last[one], ref, now)
    await lanes.save()
    outbox.hurry(lanes.promoted.difference(handed).union(own.passed_over[:1]))
    return Completed(frozenset(execution for execution, _ in last.keys() - left.keys()), own)


async def _retry(
    lanes: Lanes, outbox: Outbox, verdicts: Sequence[Verdict], now: datetime
) -> dict[ExecutionId, Moved]:
    if not verdicts:
        return {}
    await lanes.settle()
    return await retry(lanes, outbox, verdicts, sources_of(_S.REQUESTED), now)


def _after(told: Answer[Standing], left: int, ends: Sequence[AttemptEnd]) -> Standing | None:
    """The worker as it is when these have ended."""
    aside = any(not one.ok for one in ends)
    return next((one.after(left, aside=aside) for one in told.rows), None)


def _by_sources(
    ended: Iterable[Ended],
) -> dict[frozenset[ExecutionStatus], dict[Attempt, datetime | None]]:
    found: dict[frozenset[ExecutionStatus], dict[Attempt, datetime | None]] = defaultdict(dict)
    for one in ended:
        found[_sources(one.status)][one.key] = one.started_at
    return found


def _attempt_ends(ended: Sequence[Ended], refs: Mapping[ExecutionId, str]) -> list[AttemptEnd]:
    """Those whose word counted, and that nobody stopped."""
    return [
        AttemptEnd(one.execution, refs[one.execution], ok, None if ok else _result(one).error)
        for one in ended
        if one.execution in refs and (ok := one.status is _S.COMPLETED) | (one.status in _CAUSES)
    ]


def _result(ended: Ended) -> _Result:
    return msgspec.json.decode(ended.result, type=_Result)


def _verdicts(ended: Sequence[Ended]) -> list[Verdict]:
    """Of those that did not end well, and were not asked to end."""
    return [_verdict(one, cause) for one in ended if (cause := _CAUSES.get(one.status))]


def _verdict(ended: Ended, cause: Cause) -> Verdict:
    told = _result(ended)
    return Verdict(
        execution=ended.execution,
        attempt=ended.attempt,
        status=ended.status,
        cause=cause,
        error=told.error or "",
        exit_code=told.exit_code,
        started_at=ended.started_at,
    )


async def _end(tx: Tx, worker: WorkerId, ended: Sequence[Ended], now: datetime) -> None:
    by_status: dict[ExecutionStatus, list[Ended]] = defaultdict(list)
    for one in ended:
        by_status[one.status].append(one)
    for status, some in by_status.items():
        rows = [
            (one.execution, one.attempt, msgspec.Raw(one.result), one.started_at) for one in some
        ]
        await tx.later(
            _end_as(status),
            ended=rows,
            status=status,
            failure=failure_word(status),
            worker=worker,
            now=now,
        )


def _tell(outbox: Outbox, one: Ended, ref: str, now: datetime) -> None:
    moved = Moved(one.execution, one.action, ref, one.attempt, one.status)
    before = _S.RUNNING if one.started_at else _S.SCHEDULED
    outbox.moved(moved, before, started_at=one.started_at, updated=now)
    item = ExecutionCompleted(
        execution_id=one.execution,
        action_id=one.action or ActionId(0),
        action_ref=ref,
        status=one.status,
        completed_at=now,
        attempt=one.attempt,
    )
    outbox.mention(MessageType.EXECUTION_COMPLETED, item)
