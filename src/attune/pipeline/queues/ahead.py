"""How many go before one that waits, counted along an index and never further than `MOST`.

In a long queue they are counted from its nearer end, so who has just come knows the place among a million. Somewhere
in the middle of more than twice `MOST` the place is not told.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from attune.kernel.ids import LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.model import Lane, Waiter
from attune.store.database import Tx

MOST: Final = 100_000

_ALWAYS: Final = datetime(9999, 1, 1, tzinfo=UTC)
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_ALL: Final = 2**62
_AHEAD: Final = """
    SELECT count(*) FROM (SELECT enqueued_at FROM entry
                           WHERE state = 'queued' AND lane = :lane AND band = :band
                             AND sequence < :sequence
                           ORDER BY sequence LIMIT :most) x
     WHERE x.enqueued_at < :moment
"""
_BEHIND: Final = """
    SELECT count(*) FROM (SELECT enqueued_at FROM entry
                           WHERE state = 'queued' AND lane = :lane AND band = :band
                             AND sequence >= :sequence
                           ORDER BY sequence DESC LIMIT :most) x
     WHERE x.enqueued_at >= :moment
"""
_AMONG: Final = """
    SELECT count(*) AS looked_at,
           coalesce(sum(CASE WHEN (x.enqueued_at, x.sequence) < (:before, :sequence)
                             THEN 1 ELSE 0 END), 0)::bigint AS ahead
      FROM (SELECT enqueued_at, sequence FROM entry
             WHERE state = 'queued' AND lane = ANY(:lanes::bigint[]) AND band = :band
             LIMIT :most) x
"""
_READY: Final = """
    SELECT count(*) AS everywhere,
           coalesce(sum(CASE WHEN x.lane = :lane THEN 1 ELSE 0 END), 0)::bigint AS here
      FROM (SELECT lane FROM entry
             WHERE state = 'ready' AND band = :band AND (enqueued_at, sequence) < (:before, :sequence)
             ORDER BY enqueued_at, sequence LIMIT :most) x
"""
_HANDED: Final = "SELECT count(*) FROM entry WHERE state = 'handed' AND lane = :lane"


class ReadyAhead(msgspec.Struct, frozen=True):
    """Those who have a slot and go to a worker before it: of all lanes, and of its own."""

    everywhere: int
    here: int


class _Among(msgspec.Struct, frozen=True):
    looked_at: int
    ahead: int


def passes(one: Waiter, ageing: float | None) -> dict[Priority, datetime]:
    """Of each other band, those who joined before this moment go first; a band that is not named has none."""
    if ageing is None:
        return {band: _ALWAYS for band in Priority if band < one.band}
    raised = one.enqueued_at + timedelta(seconds=ageing * one.band)
    return {
        band: raised
        - timedelta(seconds=ageing * band)
        + (_TICK if band < one.band else timedelta(0))
        for band in Priority
        if band is not one.band
    }


async def queued_ahead(tx: Tx, lane: Lane, one: Waiter, most: int = MOST) -> int | None:
    """Those who wait in its lane for a slot and are given one first; null where that is not counted."""
    first = passes(one, lane.ageing)
    bars = {band: (moment, _ALL) for band, moment in first.items()}
    ahead = await _summed(tx, _AHEAD, lane, {**bars, one.band: (_ALWAYS, one.sequence)}, most)
    if ahead is not None:
        return ahead
    bars = {band: (first.get(band, _NEVER), 0) for band in Priority}
    behind = await _summed(tx, _BEHIND, lane, {**bars, one.band: (_NEVER, one.sequence)}, most)
    return None if behind is None else lane.queue_length - behind


async def queued_among(
    tx: Tx, lanes: Collection[LaneId], one: Waiter, ageing: float | None
) -> int | None:
    """Those of these lanes whose turn is before its own, where lanes compete for what they share; null for too many."""
    total = 0
    for band, (before, sequence) in _ages(one, ageing).items():
        found = await tx.one(
            _Among,
            _AMONG,
            lanes=sorted(lanes),
            band=band,
            before=before,
            sequence=sequence,
            most=MOST,
        )
        if found.looked_at == MOST:
            return None
        total += found.ahead
    return total


async def ready_ahead(
    tx: Tx, lane: LaneId, one: Waiter, ageing: float | None, most: int = MOST
) -> ReadyAhead | None:
    everywhere = here = 0
    for band, (before, sequence) in _ages(one, ageing).items():
        found = await tx.one(
            ReadyAhead, _READY, lane=lane, band=band, before=before, sequence=sequence, most=most
        )
        if found.everywhere == most:
            return None
        everywhere, here = everywhere + found.everywhere, here + found.here
    return ReadyAhead(everywhere, here)


async def ready_in(tx: Tx, lane: Lane) -> int:
    """How many of the lane have a slot and wait for a worker: they go before those who wait for a slot."""
    return lane.active_count - await tx.one(int, _HANDED, lane=lane.id)


def _ages(one: Waiter, ageing: float | None) -> dict[Priority, tuple[datetime, int]]:
    """By age and then sequence, as lanes compete with each other."""
    found = {band: (before, -1) for band, before in passes(one, ageing).items()}
    return {**found, one.band: (one.enqueued_at, one.sequence)}


async def _summed(
    tx: Tx, sql: str, lane: Lane, bars: dict[Priority, tuple[datetime, int]], most: int
) -> int | None:
    total = 0
    for band, (moment, sequence) in bars.items():
        found = await tx.one(
            int, sql, lane=lane.id, band=band, moment=moment, sequence=sequence, most=most
        )
        if found == most:
            return None
        total += found
    return total
