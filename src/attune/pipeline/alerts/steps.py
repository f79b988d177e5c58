"""What is to be told: rows of the workers' history without an event, and conditions that begin or end.

How far the history was read, and which conditions hold, stand in the table of settings. Reading goes back a little
behind that, because transactions do not commit in the order of their times; what has its event already is left out.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.pipeline.alerts.decide import after
from attune.pipeline.alerts.incidents import TOLD, alert_of
from attune.pipeline.alerts.model import (
    Episode,
    Episodes,
    Incident,
    Page,
    Place,
    Readings,
)
from attune.pipeline.workers.history import WorkerEvent
from attune.store.database import Tx
from attune.store.values import Json

STALE_AFTER: Final = timedelta(minutes=5)
_MINUTE: Final = timedelta(minutes=1)
_LOOK_BACK: Final = timedelta(hours=1)  # where nothing was read before
_OVERLAP: Final = timedelta(minutes=5)
_TIMEOUTS: Final = (WorkerEvent.NOT_STARTED, WorkerEvent.OVERDUE)
_REACHED: Final = "alerts.reached"
_EPISODES: Final = "alerts.episodes"

_VALUE: Final = "SELECT value FROM setting WHERE name = :name"
_LOCKED: Final = f"{_VALUE} FOR UPDATE"
_SAVE: Final = """
    INSERT INTO setting (name, value, updated) VALUES (:name, :value, :now)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated = excluded.updated
"""
_MAKE: Final = """
    INSERT INTO setting (name, value, updated) VALUES (:name, :value, :now) ON CONFLICT DO NOTHING
"""
_HISTORY: Final = """
    SELECT h.id, h.worker, h.event, h.at, h.execution, h.downtime_seconds, h.text,
           w.name AS worker_name, w.worker_role, x.action_ref, x.rule_ref
      FROM worker_history h
      LEFT JOIN worker w ON w.id = h.worker
      LEFT JOIN execution x ON x.id = h.execution
     WHERE h.event = ANY(:events::text[]) AND h.at >= :at AND (h.at > :at OR h.id > :id)
     ORDER BY h.at, h.id LIMIT :count
"""
_TOLD: Final = "SELECT idempotency_key FROM event WHERE idempotency_key = ANY(:keys::text[])"
_READINGS: Final = """
    SELECT (SELECT count(*) FROM worker
             WHERE status IN ('active', 'busy') AND NOT cordoned AND last_heartbeat > :fresh)
               AS active_workers,
           EXISTS (SELECT 1 FROM worker) OR EXISTS (SELECT 1 FROM worker_history) AS had_workers,
           (SELECT count(*) FROM dead_letter WHERE replayed_at IS NULL) AS dead_letters,
           (SELECT count(*) FROM entry e JOIN execution x ON x.id = e.execution
             WHERE e.state = 'handed' AND x.status = 'scheduled' AND x.updated <= :old)
               AS stale_executions,
           (SELECT count(*) FROM worker_history
             WHERE event = ANY(:timeouts::text[]) AND at > :minute AND at <= :now) AS timeouts
"""


class _Reached(msgspec.Struct, frozen=True):
    """Everything that happened before was told."""

    at: datetime


class _ReachedRow(msgspec.Struct, frozen=True):
    value: _Reached


class _EpisodesRow(msgspec.Struct, frozen=True):
    value: Episodes


async def reached(tx: Tx, now: datetime) -> Place:
    """Where to read on from."""
    found = await tx.first(_ReachedRow, _VALUE, name=_REACHED)
    return Place(now - _LOOK_BACK if found is None else found.value.at - _OVERLAP)


async def untold(tx: Tx, place: Place, count: int) -> Page:
    """What happened from there on, at most so much of it."""
    found = await tx.all(Incident, _HISTORY, events=TOLD, at=place.at, id=place.id, count=count)
    if not found:
        return Page((), None)
    alerts = [alert_of(one) for one in found]
    known = set(await tx.all(str, _TOLD, keys=sorted({one.key for one in alerts})))
    new = {one.key: one for one in alerts if one.key not in known}
    return Page(tuple(new.values()), Place(found[-1].at, found[-1].id))


async def reach(tx: Tx, now: datetime) -> None:
    """Everything that happened up to now has its event. Whoever writes last may set it back, which costs a look."""
    await tx.execute(_SAVE, name=_REACHED, value=Json(_Reached(now)), now=now)


async def readings(tx: Tx, stale: timedelta, now: datetime) -> Readings:
    """`stale` is the silence after which a worker counts as gone."""
    return await tx.one(
        Readings,
        _READINGS,
        fresh=now - stale,
        old=now - STALE_AFTER,
        timeouts=_TIMEOUTS,
        minute=now - _MINUTE,
        now=now,
    )


async def due(tx: Tx, stale: timedelta, now: datetime) -> bool:
    """Whether something is to be written or told. Only reads, so that looking costs others nothing."""
    known = await _episodes(tx, _VALUE)
    changed = after(known, await readings(tx, stale, now), now) != known
    return changed or not all(one.told for one in known.values())


async def advance(tx: Tx, stale: timedelta, now: datetime) -> Episodes:
    """Begin and end what does so now; all that there are. One executor decides at a time, under the row's lock."""
    await tx.execute(_MAKE, name=_EPISODES, value=Json({}), now=now)
    known = await _episodes(tx, _LOCKED)
    found = after(known, await readings(tx, stale, now), now)
    if found != known:
        await tx.execute(_SAVE, name=_EPISODES, value=Json(found), now=now)
    return found


async def mark_told(tx: Tx, told: Episodes, now: datetime) -> None:
    """Those of these that are still as they were told."""
    known = await _episodes(tx, _LOCKED)
    found = {name: _marked(one, told.get(name)) for name, one in known.items()}
    if found != known:
        await tx.execute(_SAVE, name=_EPISODES, value=Json(found), now=now)


def _marked(known: Episode, told: Episode | None) -> Episode:
    return msgspec.structs.replace(known, told=True) if known == told else known


async def _episodes(tx: Tx, sql: str) -> Episodes:
    found = await tx.first(_EpisodesRow, sql, name=_EPISODES)
    return {} if found is None else found.value
