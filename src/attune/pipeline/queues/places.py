"""Who stands where in the queues of an action: for people who look.

How many there are is known from the counters of the lanes, and a page is read along an index, so the first pages of a
queue cost the same whether ten wait in it or a million.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from attune.catalog.equality import same
from attune.catalog.runtime_settings import load_settings
from attune.kernel.errors import NotFound
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.decide import due
from attune.pipeline.queues.model import State, Waiter
from attune.store.database import Tx

_LANES: Final = """
    SELECT l.id, l.group_key, l.paused, l.reason, l.queue_length, l.active_count,
           coalesce(h.count, 0) AS handed_count
      FROM lane l
      LEFT JOIN (SELECT lane, count(*) AS count FROM entry WHERE state = 'handed' GROUP BY lane) h
        ON h.lane = l.id
     WHERE l.action_ref = :ref ORDER BY l.group_key
"""
_COLUMNS: Final = "execution, band, sequence, enqueued_at, reason"
_ORDERS: Final = {
    State.READY: "band, enqueued_at, sequence",
    State.QUEUED: "band, sequence",
    State.HANDED: "enqueued_at, sequence",
}
# The states stand in the text, so that a database knows which index has them.
_ENTRIES: Final = {
    state: f"SELECT {_COLUMNS} FROM entry WHERE state = '{state}' AND lane = :lane"  # noqa: S608
    for state in State
}
_WAITING: Final = (State.READY, State.QUEUED)


class LaneCounts(msgspec.Struct, frozen=True, kw_only=True):
    """A lane of the action, as far as its entries depend on it."""

    id: LaneId
    group_key: str
    paused: bool
    reason: GateName | None
    queue_length: int
    active_count: int
    handed_count: int

    def count(self, state: State) -> int:
        counts = {State.QUEUED: self.queue_length, State.HANDED: self.handed_count}
        return counts.get(state, self.active_count - self.handed_count)

    @property
    def group(self) -> dict[str, Any]:
        return group_values(self.group_key)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One that waits, or that a worker has: then it has no position any more.

    Positions count from 1 in each lane. Those that have a slot and wait for a worker go before the others.
    """

    execution: ExecutionId
    position: int | None
    priority: Priority
    state: State
    reason: GateName | None
    enqueued_at: datetime
    group_key: str


class Places(msgspec.Struct, frozen=True):
    items: list[Place]
    total: int


class Stretch(msgspec.Struct, frozen=True):
    """Some of those of a lane that are in one state, in their order."""

    lane: LaneCounts
    state: State
    skipped: int
    count: int


class _Row(Waiter, frozen=True):
    reason: GateName | None


def group_values(group_key: str) -> dict[str, Any]:
    """The values that a group stands for; none for an action's only lane."""
    return msgspec.json.decode(group_key, type=dict[str, Any]) if group_key else {}


async def lanes_of(
    tx: Tx, action_ref: str, group: Mapping[str, Any] | None = None
) -> list[LaneCounts]:
    """All of the action, or those of a group, by key; `NotFound` for a group that has none.

    A group has one, and for a while two where a policy has come to name its parameters in another order.
    """
    lanes = await tx.all(LaneCounts, _LANES, ref=action_ref)
    if group is None:
        return lanes
    found = [lane for lane in lanes if same(lane.group, dict(group))]
    if not found:
        shown = msgspec.json.encode(group).decode()
        raise NotFound(f"'{action_ref}' has no queue of the group {shown[:200]}.", ref=action_ref)
    return found


async def places(
    tx: Tx,
    action_ref: str,
    state: State | None,
    group: Mapping[str, Any] | None,
    limit: int,
    offset: int,
) -> Places:
    """Lane by lane, each in the order in which its entries go; without a `state`, all that wait."""
    states = _WAITING if state is None else (state,)
    lanes = await lanes_of(tx, action_ref, group)
    ageing = (await load_settings(tx)).ageing_seconds
    found: list[Place] = []
    for stretch in stretches(lanes, states, limit, offset):
        found += _placed(stretch, await _rows(tx, stretch, ageing))
    return Places(found, sum(lane.count(each) for lane in lanes for each in states))


def stretches(
    lanes: Iterable[LaneCounts], states: Sequence[State], limit: int, offset: int
) -> list[Stretch]:
    """Where the rows of a page stand."""
    found: list[Stretch] = []
    for lane in lanes:
        for state in states:
            there = lane.count(state)
            taken = min(there - offset, limit)
            if taken > 0:
                found.append(Stretch(lane, state, offset, taken))
                limit -= taken
            offset = max(offset - there, 0)
    return found


async def _rows(tx: Tx, stretch: Stretch, ageing: float | None) -> list[_Row]:
    if ageing is not None and stretch.state is not State.HANDED:
        return await _aged_rows(tx, stretch, ageing)
    values = {"lane": stretch.lane.id, "most": stretch.count, "skipped": stretch.skipped}
    return await tx.all(_Row, page_sql(stretch.state), **values)


def page_sql(state: State) -> str:
    return f"{_ENTRIES[state]} ORDER BY {_ORDERS[state]} LIMIT :most OFFSET :skipped"


async def _aged_rows(tx: Tx, stretch: Stretch, ageing: float) -> list[_Row]:
    """Where waiting raises: the first of every band, merged as admission merges them."""
    order = _ORDERS[stretch.state]
    sql = f"{_ENTRIES[stretch.state]} AND band = :band ORDER BY {order} LIMIT :most"
    most = stretch.skipped + stretch.count
    heads: list[_Row] = []
    for band in Priority:
        heads += await tx.all(_Row, sql, lane=stretch.lane.id, band=band, most=most)
    return sorted(heads, key=lambda row: due(row, ageing))[stretch.skipped : most]


def _placed(stretch: Stretch, rows: Iterable[_Row]) -> list[Place]:
    lane, state = stretch.lane, stretch.state
    ahead = lane.count(State.READY) if state is State.QUEUED else 0
    return [
        Place(
            execution=row.execution,
            position=None if state is State.HANDED else ahead + number,
            priority=row.band,
            state=state,
            reason=_reason(lane, state, row),
            enqueued_at=row.enqueued_at,
            group_key=lane.group_key,
        )
        for number, row in enumerate(rows, start=stretch.skipped + 1)
    ]


def _reason(lane: LaneCounts, state: State, row: _Row) -> GateName | None:
    """What the lane waits for now goes before what the entry began to wait for."""
    if state is State.HANDED:
        return None
    if state is State.READY:
        return row.reason
    return GateName.PAUSE if lane.paused else lane.reason or row.reason
