"""Questions to workers over the bus: a heartbeat tells that a process lives, an answer that messages reach it.

A question is claimed in the worker's row, so any number of executors ask one an interval altogether. `asked_at` is the
first question that is not answered; once that has made the worker `error` it is the last one, because from then on
only the next answer matters.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from attune.kernel.ids import WorkerId
from attune.pipeline.workers.decide import probing
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.pipeline.workers.model import Asked, Probing
from attune.store.database import Tx

_ASKABLE: Final = """
    SELECT id, name, status, asked_at, answered_at FROM worker
     WHERE status <> 'inactive' AND last_heartbeat > :since ORDER BY id FOR UPDATE
"""
_ASK: Final = "UPDATE worker SET asked_at = :now WHERE id = ANY(:ids::bigint[])"
_GIVE_UP: Final = """
    UPDATE worker SET status = 'error', updated = :now WHERE id = ANY(:ids::bigint[])
"""
_RECOVERED: Final = """
    UPDATE worker SET status = 'active', updated = :now
     WHERE id = ANY(:ids::bigint[]) AND status = 'error' AND asked_at IS NOT NULL
    RETURNING id
"""
_ANSWERED: Final = """
    UPDATE worker SET asked_at = NULL, answered_at = :now WHERE id = ANY(:ids::bigint[])
"""


async def claim_questions(
    tx: Tx, interval: timedelta, since: datetime, now: datetime, *, judges: bool
) -> Probing:
    """The questions of this interval that nobody else has asked; the caller sends them once this is committed."""
    found = probing(await tx.all(Asked, _ASKABLE, since=since), interval, now, judges=judges)
    if found.ask:
        await tx.execute(_ASK, ids=[one.id for one in found.ask], now=now)
    if found.unresponsive:
        await tx.execute(_GIVE_UP, ids=[one.id for one in found.unresponsive], now=now)
        await note(tx, [_unresponsive(one, now) for one in found.unresponsive])
    return found


async def answered(tx: Tx, workers: Collection[int], now: datetime) -> list[WorkerId]:
    """These owe nothing more. Returns those that counted as `error` for an unanswered question, and no longer do."""
    ids = sorted(workers)
    recovered = await tx.all(WorkerId, _RECOVERED, ids=ids, now=now)
    await tx.execute(_ANSWERED, ids=ids, now=now)
    await note(
        tx, [Happened(worker=one, event=WorkerEvent.RESPONSIVE, at=now) for one in recovered]
    )
    return recovered


def _unresponsive(worker: Asked, now: datetime) -> Happened:
    asked = f"{worker.asked_at:%Y-%m-%dT%H:%M:%SZ}"
    text = f"no answer to a question of {asked}, though its heartbeat lives"
    return Happened(worker=worker.id, event=WorkerEvent.UNRESPONSIVE, at=now, text=text)
