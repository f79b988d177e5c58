"""Attempts that fail and are followed by another: the slot goes on, the execution rests, the attempt is on record."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.catalog.retrying import Retries
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.decide import pause_before_next
from attune.pipeline.completion.model import PastAttempt, Verdict
from attune.pipeline.outbox import Moved, Outbox
from attune.pipeline.queues.model import Pause
from attune.pipeline.queues.returning import step_in, step_out
from attune.pipeline.queues.steps import Lanes
from attune.store import schema
from attune.store.database import Tx

_LONGEST_ERROR: Final = 2000
_OPEN: Final = """
    SELECT x.id, x.attempt, x.status, x.retry, e.retries AS spent, e.worker
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.execution = ANY(:ids::bigint[]) AND e.state = 'handed' AND x.retry IS NOT NULL
       AND x.status = ANY(:sources::text[])
"""
_AGAIN: Final = """
    UPDATE execution SET status = 'requested', attempt = execution.attempt + 1, worker = NULL, started_at = NULL,
           updated = :now
      FROM ROWS(:attempts AS v(id bigint, attempt int))
     WHERE execution.id = v.id AND execution.attempt = v.attempt
       AND execution.status = ANY(:sources::text[])
    RETURNING execution.id, execution.action, execution.action_ref, execution.attempt, execution.status
"""


class _Open(msgspec.Struct, frozen=True):
    """An attempt that has not ended, of an execution that may have others."""

    id: ExecutionId
    attempt: int
    status: ExecutionStatus
    retry: Retries
    spent: int
    worker: WorkerId | None


async def retry(
    lanes: Lanes,
    outbox: Outbox,
    verdicts: Sequence[Verdict],
    sources: Collection[ExecutionStatus],
    now: datetime,
) -> dict[ExecutionId, Moved]:
    """Those of these that go on with another attempt; the others end by their verdict.

    `sources` are the statuses in which such an attempt may be found. Who waits for nothing is back in its lane at
    once; what is free there then is still to be given.
    """
    if not verdicts:
        return {}
    ids = sorted(one.execution for one in verdicts)
    found = await lanes.tx.all(_Open, _OPEN, ids=ids, sources=sorted(sources))
    pauses = _pauses(verdicts, found, now)
    if not pauses:
        return {}
    opened = {one.id: one for one in found if one.id in pauses}
    moved = await _begin_anew(lanes.tx, outbox, opened, sources, now)
    pauses = {one: pause for one, pause in pauses.items() if one in moved}
    await remember(
        lanes.tx,
        [_past(one, opened[one.execution], now) for one in verdicts if one.execution in moved],
    )
    left = await step_out(lanes, pauses)
    await step_in(lanes, {one: lane for one, lane in left.items() if pauses[one].until <= now})
    return moved


def _pauses(
    verdicts: Sequence[Verdict], found: Sequence[_Open], now: datetime
) -> dict[ExecutionId, Pause]:
    known = {(one.id, one.attempt): one for one in found}
    pauses: dict[ExecutionId, Pause] = {}
    for one in verdicts:
        opened = known.get((one.execution, one.attempt))
        if opened is None:
            continue
        pause = pause_before_next(opened.retry, opened.spent, one, now)
        if pause is not None:
            pauses[one.execution] = pause
    return pauses


async def _begin_anew(
    tx: Tx,
    outbox: Outbox,
    opened: Mapping[ExecutionId, _Open],
    sources: Collection[ExecutionStatus],
    now: datetime,
) -> dict[ExecutionId, Moved]:
    attempts = [(one.id, one.attempt) for one in opened.values()]
    moved = await tx.all(Moved, _AGAIN, attempts=attempts, sources=sorted(sources), now=now)
    for one in moved:
        outbox.moved(one, opened[one.id].status)
    return {one.id: one for one in moved}


def _past(verdict: Verdict, opened: _Open, now: datetime) -> PastAttempt:
    return PastAttempt(
        execution=verdict.execution,
        attempt=verdict.attempt,
        worker=opened.worker,
        status=verdict.status,
        cause=verdict.cause,
        error=verdict.error[-_LONGEST_ERROR:] or None,
        started_at=verdict.started_at,
        ended_at=now,
    )


async def remember(tx: Tx, past: Sequence[PastAttempt]) -> None:
    await tx.insert(schema.execution_attempt, past)
