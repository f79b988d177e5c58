"""Taking work back from a worker that is gone, or that gives it back: to another worker, or to its end."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.catalog.definitions import Definitions
from attune.catalog.placement import Needs
from attune.catalog.retrying import Cause
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus, sources_of
from attune.pipeline.completion.decide import fate_of
from attune.pipeline.completion.model import (
    Fate,
    Held,
    LostWorker,
    PastAttempt,
    abandoned_result,
)
from attune.pipeline.completion.retrying import remember
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.executions.outputs import forget_output
from attune.pipeline.outbox import Moved, Outbox
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.queues.steps import Lanes, lanes_by_id
from attune.pipeline.workers.history import ALERTS, Happened, WorkerEvent, note
from attune.store.database import Tx
from attune.store.values import Json

_S = ExecutionStatus

_HELD: Final = """
    SELECT e.execution, e.lane, e.attempt, x.status, e.worker, e.definition, e.retries, e.losses, e.needs,
           x.retry, x.started_at
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed' AND e.worker = :worker
     ORDER BY e.execution
"""
# Locked: a start, or an end that names another lane, is either told before or counts no more.
_HELD_NOW: Final = f"{_HELD} FOR UPDATE"
_SILENT: Final = """
    SELECT DISTINCT w.id, w.name, w.cordoned FROM worker w
     WHERE w.last_heartbeat <= :since
       AND EXISTS (SELECT 1 FROM entry e WHERE e.state = 'handed' AND e.worker = w.id)
     ORDER BY w.id
"""
_STILL_SILENT: Final = """
    SELECT id, name, cordoned FROM worker WHERE id = :id AND last_heartbeat <= :since FOR UPDATE
"""
_TAKE_ENTRY: Final = """
    UPDATE entry SET state = 'ready', reason = 'worker', worker = NULL, lease_expires_at = NULL,
           attempt = entry.attempt + 1, due_at = :now, retries = v.retries, losses = v.losses, needs = v.needs
      FROM ROWS(:taken AS v(execution bigint, retries int, losses int, needs jsonb))
     WHERE entry.execution = v.execution
"""
_TAKE_EXECUTION: Final = """
    UPDATE execution SET status = 'requested', attempt = attempt + 1, worker = NULL, started_at = NULL,
           updated = :now
     WHERE id = ANY(:ids::bigint[]) AND status = ANY(:sources::text[])
    RETURNING id, action, action_ref, attempt, status
"""


async def silent_workers(tx: Tx, since: datetime) -> list[LostWorker]:
    """Those that hold work and have not been heard of since then."""
    return await tx.all(LostWorker, _SILENT, since=since)


async def take_back_from_silent(
    tx: Tx,
    terms: QueueTerms,
    definitions: Definitions,
    outbox: Outbox,
    worker: WorkerId,
    since: datetime,
    now: datetime,
) -> int:
    """Everything it holds, if it is still silent when its row is locked."""
    lanes = await _lanes_of(tx, worker, terms, now)
    lost = await tx.first(LostWorker, _STILL_SILENT, id=worker, since=since)
    if lost is None:
        return 0
    return await _take_back(definitions, outbox, lanes, lost, "was lost")


async def take_back(
    tx: Tx,
    terms: QueueTerms,
    definitions: Definitions,
    outbox: Outbox,
    lost: LostWorker,
    reason: str,
    now: datetime,
) -> int:
    """Everything that a worker holds of an earlier life, or cannot finish. `reason` completes "The worker w …"."""
    lanes = await _lanes_of(tx, lost.id, terms, now)
    return await _take_back(definitions, outbox, lanes, lost, reason)


async def hand_back(
    tx: Tx,
    terms: QueueTerms,
    outbox: Outbox,
    worker: WorkerId,
    ids: Collection[ExecutionId],
    now: datetime,
) -> int:
    """What a worker was handed and knows that it has not begun: no attempt was made, so none is counted."""
    lanes = await _lanes_of(tx, worker, terms, now)
    held = [
        one
        for one in await tx.all(Held, _HELD_NOW, worker=worker)
        if one.execution in set(ids) and one.status is _S.SCHEDULED
    ]
    await _again(lanes, outbox, held, began=False)
    await lanes.promote()
    await lanes.save()
    outbox.hurry(lanes.promoted.union(one.execution for one in held))
    return len(held)


async def _lanes_of(tx: Tx, worker: WorkerId, terms: QueueTerms, now: datetime) -> Lanes:
    held = await tx.all(Held, _HELD, worker=worker)
    return await lanes_by_id(tx, {one.lane for one in held}, terms, now)


async def _take_back(
    definitions: Definitions, outbox: Outbox, lanes: Lanes, lost: LostWorker, reason: str
) -> int:
    """What it holds is read again under the lanes' locks: it may have ended while we waited for them."""
    tx, now = lanes.tx, lanes.now
    held = await tx.all(Held, _HELD_NOW, worker=lost.id)
    known = await definitions.get(tx, {one.definition for one in held})
    fates: dict[Fate, list[Held]] = defaultdict(list)
    for one in held:
        fates[fate_of(one, known[one.definition])].append(one)
    await remember(tx, [_past(one, lost, reason, now) for one in fates[Fate.AGAIN]])
    await _again(lanes, outbox, [_spent(one) for one in fates[Fate.AGAIN]], began=True)
    await _abandon(tx, outbox, fates[Fate.ABANDONED], lost, reason, now)
    await _cancel(tx, outbox, fates[Fate.CANCELLED], now)
    gone = fates[Fate.ABANDONED] + fates[Fate.CANCELLED]
    # Where no start was told, nobody knows whether there was one; for a rate limit there was.
    started = {one.execution: now for one in gone if one.status is not _S.RUNNING}
    await lanes.leave([one.execution for one in gone], started)
    await lanes.save()
    outbox.hurry(lanes.promoted | {one.execution for one in fates[Fate.AGAIN]})
    return len(held)


def _spent(held: Held) -> Held:
    """One that ran has used up a retry; one that nobody saw run, one of the few losses that it may have."""
    ran = held.status is _S.RUNNING
    needs = held.needs or Needs()
    avoid = tuple(dict.fromkeys((*needs.avoid, held.worker)))
    return msgspec.structs.replace(
        held,
        retries=held.retries + ran,
        losses=held.losses + (not ran),
        needs=msgspec.structs.replace(needs, avoid=avoid),
    )


async def _again(lanes: Lanes, outbox: Outbox, held: Sequence[Held], *, began: bool) -> None:
    """Back to ready with the next attempt: its slot and its place stay its own, the old attempt is fenced off."""
    if not held:
        return
    tx, now = lanes.tx, lanes.now
    was = {one.execution: one.status for one in held}
    taken = [(one.execution, one.retries, one.losses, _json(one.needs)) for one in held]
    await tx.execute(_TAKE_ENTRY, taken=taken, now=now)
    await forget_output(tx, list(was))
    sources = sorted(sources_of(_S.REQUESTED))
    for moved in await tx.all(Moved, _TAKE_EXECUTION, ids=list(was), sources=sources, now=now):
        outbox.moved(moved, was[moved.id])
    await lanes.begin_anew({one.execution: one.lane for one in held}, began=began)


def _json(needs: Needs | None) -> Json | None:
    return None if needs is None else Json(needs)


def _past(held: Held, lost: LostWorker, reason: str, now: datetime) -> PastAttempt:
    return PastAttempt(
        execution=held.execution,
        attempt=held.attempt,
        worker=held.worker,
        status=_S.ABANDONED,
        cause=Cause.WORKER_LOST,
        error=f"The worker {lost.name} {reason} while the execution was {held.status}.",
        started_at=held.started_at,
        ended_at=now,
    )


async def _abandon(
    tx: Tx, outbox: Outbox, held: Sequence[Held], lost: LostWorker, reason: str, now: datetime
) -> None:
    for status in sorted({one.status for one in held}):
        ids = [one.execution for one in held if one.status is status]
        result = abandoned_result(lost, status, reason)
        sources = sources_of(_S.ABANDONED)
        moved = await executions.end(tx, ids, _S.ABANDONED, sources, result, now)
        for one in moved:
            outbox.moved(one, status)
        await note(tx, [_abandoned(one, lost, result["error"], now) for one in moved])
        if moved:
            tx.wake(ALERTS)


def _abandoned(moved: Moved, lost: LostWorker, text: str, now: datetime) -> Happened:
    return Happened(
        worker=lost.id, event=WorkerEvent.ABANDONED, at=now, execution=moved.id, text=text
    )


async def _cancel(tx: Tx, outbox: Outbox, held: Sequence[Held], now: datetime) -> None:
    ids: list[ExecutionId] = [one.execution for one in held]
    result = unrun_result("The execution was cancelled; its worker is gone.")
    for moved in await executions.end(tx, ids, _S.CANCELLED, {_S.CANCELING}, result, now):
        outbox.moved(moved, _S.CANCELING)
