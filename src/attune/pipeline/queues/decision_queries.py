"""The decision log in pages: lane after lane, and each lane by number.

Time does not order it, because the clocks of several processes differ. So "since" means, in each lane, from the first
decision that is not older on, without a gap. A page is small in bytes too: one row may speak of thousands.
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from attune.kernel.ids import LaneId
from attune.store.database import Tx

_ROWS: Final = """
    SELECT d.lane, d.number, d.at, d.active_before, d.active_after, d.queue_length, d.max_concurrent,
           d.reason, length(d.items::text) AS weight,
           CASE WHEN d.up_to - length(d.items::text) < :room THEN d.items END AS items,
           l.action_ref, l.group_key
      FROM (SELECT p.*, sum(length(p.items::text)) OVER (ORDER BY p.number) AS up_to
              FROM (SELECT * FROM decision WHERE lane = :lane AND number > :beyond
                     ORDER BY number LIMIT :rows) p) d
      LEFT JOIN lane l ON l.id = d.lane
     ORDER BY d.number
"""
_LANES: Final = """
    WITH RECURSIVE found(lane, place) AS (
        SELECT min(lane), 1 FROM decision WHERE lane > :beyond
        UNION ALL
        SELECT (SELECT min(d.lane) FROM decision d WHERE d.lane > f.lane), f.place + 1
          FROM found f WHERE f.lane IS NOT NULL AND f.place < :most)
    SELECT lane FROM found WHERE lane IS NOT NULL ORDER BY lane
"""
_LANES_OF_ACTION: Final = """
    SELECT id FROM lane WHERE action_ref = :ref AND id > :beyond ORDER BY id LIMIT :most
"""
_FIRST: Final = """
    SELECT number FROM decision WHERE lane = :lane AND at >= :since ORDER BY number LIMIT 1
"""
_ACTION_OF: Final = "SELECT action_ref FROM lane WHERE id = :lane"
_LANES_OF_A_PAGE: Final = 100
_BYTES: Final = 4 * 2**20
_NO_MORE: Final = 2**63 - 1


class Cursor(msgspec.Struct, frozen=True):
    """The decision up to which a reader has come."""

    lane: LaneId
    number: int


_BEFORE_ALL: Final = Cursor(LaneId(-(2**62)), 0)


class WantedDecisions(msgspec.Struct, frozen=True, kw_only=True):
    since: datetime | None = None
    lane: LaneId | None = None
    action_ref: str | None = None


class LoggedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The row and whose lane it is; both are null for the whole system. `items` is null where a page has no room."""

    lane: LaneId
    number: int
    at: datetime
    active_before: int
    active_after: int
    queue_length: int
    max_concurrent: int | None
    reason: str | None
    weight: int
    items: list[Any] | None
    action_ref: str | None
    group_key: str | None


class DecisionPage(msgspec.Struct, frozen=True):
    """`next` is null at the end. A page may be short, or empty, before it."""

    rows: list[LoggedDecision]
    next: Cursor | None


async def decision_page(
    tx: Tx, wanted: WantedDecisions, after: Cursor | None, limit: int
) -> DecisionPage:
    filling = _Filling(limit)
    begins = after or _BEFORE_ALL
    goes_on = after is not None and await _fits(tx, wanted, after.lane)
    if goes_on and await filling.read(tx, begins.lane, begins.number):
        return filling.page()
    lanes = await _lanes(tx, wanted, begins.lane)
    for lane in lanes:
        first = await _first(tx, lane, wanted.since)
        if first is not None and await filling.read(tx, lane, first - 1):
            return filling.page()
    more = len(lanes) == _LANES_OF_A_PAGE
    return DecisionPage(filling.rows, Cursor(lanes[-1], _NO_MORE) if more else None)


class _Filling:
    """A page as it fills."""

    def __init__(self, limit: int) -> None:
        self.rows: list[LoggedDecision] = []
        self._limit = limit
        self._room = _BYTES

    async def read(self, tx: Tx, lane: LaneId, beyond: int) -> bool:
        """Take the lane's rows; true when there is one more than the page has room for."""
        rows = self._limit + 1 - len(self.rows)
        found = await tx.all(
            LoggedDecision, _ROWS, lane=lane, beyond=beyond, rows=rows, room=self._room
        )
        for row in found:
            if row.items is None or len(self.rows) == self._limit:
                return True
            self.rows.append(row)
            self._room -= row.weight
        return False

    def page(self) -> DecisionPage:
        last = self.rows[-1]
        return DecisionPage(self.rows, Cursor(last.lane, last.number))


async def _fits(tx: Tx, wanted: WantedDecisions, lane: LaneId) -> bool:
    """Whether a lane is wanted. A cursor may come from another question."""
    if wanted.lane not in {None, lane}:
        return False
    if wanted.action_ref is None:
        return True
    return await tx.first(str, _ACTION_OF, lane=lane) == wanted.action_ref


async def _lanes(tx: Tx, wanted: WantedDecisions, beyond: int) -> list[LaneId]:
    """The next lanes, as many as one page looks into."""
    if wanted.lane is not None:
        fits = wanted.lane > beyond and await _fits(tx, wanted, wanted.lane)
        return [wanted.lane] if fits else []
    most = _LANES_OF_A_PAGE
    if wanted.action_ref is None:
        return await tx.all(LaneId, _LANES, beyond=beyond, most=most)
    return await tx.all(LaneId, _LANES_OF_ACTION, ref=wanted.action_ref, beyond=beyond, most=most)


async def _first(tx: Tx, lane: LaneId, since: datetime | None) -> int | None:
    """The number of the lane's first decision that is wanted."""
    return 1 if since is None else await tx.first(int, _FIRST, lane=lane, since=since)
