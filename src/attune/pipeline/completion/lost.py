"""Taking work back from a worker that is gone: to another worker, or to its end."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from attune.catalog.definitions import Definitions
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus, sources_of
from attune.pipeline.completion.decide import fate_of
from attune.pipeline.completion.model import Fate, Held, LostWorker, abandoned_result
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.executions.outputs import forget_output
from attune.pipeline.outbox import Moved, Outbox
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.queues.steps import Lanes, lanes_by_id
from attune.store.database import Tx

_S = ExecutionStatus

_HELD: Final = """
    SELECT e.execution, e.lane, e.attempt, x.status, e.worker, e.definition
      FROM entry e JOIN execution x ON x.id = e.execution
     WHERE e.state = 'handed' AND e.worker = :worker
     ORDER BY e.execution
"""
_SILENT: Final = """
    SELECT DISTINCT w.id, w.name, w.cordoned FROM worker w
     WHERE (w.last_heartbeat <= :since OR w.status <> 'active')
       AND EXISTS (SELECT 1 FROM entry e WHERE e.state = 'handed' AND e.worker = w.id)
     ORDER BY w.id
"""
_STILL_SILENT: Final = """
    SELECT id, name, cordoned FROM worker
     WHERE id = :id AND (last_heartbeat <= :since OR status <> 'active') FOR UPDATE
"""
_TAKE_ENTRY: Final = """
    UPDATE entry SET state = 'ready', reason = 'worker', worker = NULL, lease_expires_at = NULL,
           attempt = attempt + 1
     WHERE execution = ANY(:ids::bigint[])
"""
_TAKE_EXECUTION: Final = """
    UPDATE execution SET status = 'requested', attempt = attempt + 1, worker = NULL, started_at = NULL,
           updated = :now
     WHERE id = ANY(:ids::bigint[]) AND status = ANY(:sources::text[])
    RETURNING id, action, action_ref, attempt, status
"""


async def silent_workers(tx: Tx, since: datetime) -> list[LostWorker]:
    """Those that hold work and have not been heard of since then, or have left."""
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
    held = await tx.all(Held, _HELD, worker=worker)
    lanes = await lanes_by_id(tx, {one.lane for one in held}, terms, now)
    lost = await tx.first(LostWorker, _STILL_SILENT, id=worker, since=since)
    if lost is None:
        return 0
    reason = "was lost"
    return await _take_back(tx, definitions, outbox, lanes, lost, reason, now)


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
    held = await tx.all(Held, _HELD, worker=lost.id)
    lanes = await lanes_by_id(tx, {one.lane for one in held}, terms, now)
    return await _take_back(tx, definitions, outbox, lanes, lost, reason, now)


async def _take_back(
    tx: Tx,
    definitions: Definitions,
    outbox: Outbox,
    lanes: Lanes,
    lost: LostWorker,
    reason: str,
    now: datetime,
) -> int:
    """What it holds is read again under the lanes' locks: it may have ended while we waited for them."""
    held = await tx.all(Held, _HELD, worker=lost.id)
    known = await definitions.get(tx, {one.definition for one in held})
    fates: dict[Fate, list[Held]] = defaultdict(list)
    for one in held:
        fates[fate_of(one, known[one.definition])].append(one)
    await _again(tx, outbox, fates[Fate.AGAIN], now)
    await lanes.begin_anew({one.execution: one.lane for one in fates[Fate.AGAIN]})
    await _abandon(tx, outbox, fates[Fate.ABANDONED], lost, reason, now)
    await _cancel(tx, outbox, fates[Fate.CANCELLED], now)
    gone = fates[Fate.ABANDONED] + fates[Fate.CANCELLED]
    # Where no start was told, nobody knows whether there was one; for a rate limit there was.
    started = {one.execution: now for one in gone if one.status is not _S.RUNNING}
    await lanes.leave([one.execution for one in gone], started)
    await lanes.save()
    outbox.hurry(lanes.promoted | {one.execution for one in fates[Fate.AGAIN]})
    return len(held)


async def _again(tx: Tx, outbox: Outbox, held: Sequence[Held], now: datetime) -> None:
    """Back to ready with the next attempt: its slot and its place stay its own, the old attempt is fenced off."""
    ids = [one.execution for one in held]
    if not ids:
        return
    was = {one.execution: one.status for one in held}
    await tx.execute(_TAKE_ENTRY, ids=ids)
    await forget_output(tx, ids)
    sources = sorted(sources_of(_S.REQUESTED))
    for moved in await tx.all(Moved, _TAKE_EXECUTION, ids=ids, sources=sources, now=now):
        outbox.moved(moved, was[moved.id])


async def _abandon(
    tx: Tx, outbox: Outbox, held: Sequence[Held], lost: LostWorker, reason: str, now: datetime
) -> None:
    for status in sorted({one.status for one in held}):
        ids = [one.execution for one in held if one.status is status]
        result = abandoned_result(lost, status, reason)
        for moved in await executions.end(
            tx, ids, _S.ABANDONED, sources_of(_S.ABANDONED), result, now
        ):
            outbox.moved(moved, status)


async def _cancel(tx: Tx, outbox: Outbox, held: Sequence[Held], now: datetime) -> None:
    ids: list[ExecutionId] = [one.execution for one in held]
    result = unrun_result("The execution was cancelled; its worker is gone.")
    for moved in await executions.end(tx, ids, _S.CANCELLED, {_S.CANCELING}, result, now):
        outbox.moved(moved, _S.CANCELING)
