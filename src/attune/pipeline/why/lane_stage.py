"""Between the request and a slot: the gates of the lane, those who hold its slots, those who are ahead."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from attune.kernel.ids import ExecutionId, PoolId
from attune.pipeline.policies.decide import WHOLE, limit_pool, quota_pool
from attune.pipeline.policies.model import EffectivePolicy, Gate, GateName, Quota, QuotaType
from attune.pipeline.queues.ahead import queued_ahead, queued_among, ready_in
from attune.pipeline.queues.holders import (
    elapsed,
    lanes_sharing,
    not_begun,
    shown,
    slot_holders,
)
from attune.pipeline.queues.looking import LaneView
from attune.pipeline.queues.model import Lane, Waiter
from attune.pipeline.why.decide import lane_obstacle, turn_obstacle
from attune.pipeline.why.forecast import rate_seconds
from attune.pipeline.why.model import Limit, Obstacle, Outlook, Stage
from attune.store.database import Tx

_LIMITS = (GateName.CONCURRENCY, GateName.QUOTA)


class _Seen(msgspec.Struct, frozen=True):
    """A gate of the lane, what its slots are those of, and what it means for the time to come."""

    gate: Gate
    slots_of: str
    limit: Limit | None = None


async def lane_stage(tx: Tx, view: LaneView, one: Waiter, now: datetime) -> Stage:
    """For one that waits for a slot. The gates are those of the lane's head, and of everyone behind it."""
    lane = view.lane
    ahead = await queued_ahead(tx, lane, one)
    looker = _Looker(tx, view, one, ahead, now)
    seen = [await looker.look(gate, pool) for gate, pool in _counted(view, now)]
    obstacles = [
        lane_obstacle(each.gate, each.slots_of, lane.name) for each in seen if each.gate.is_closed
    ]
    if ahead != 0 or not obstacles:
        obstacles.append(_turn(ahead))
    return Stage(
        obstacles=tuple(obstacles),
        ahead=ahead,
        position=None if ahead is None else await ready_in(tx, lane) + ahead + 1,
        outlook=_outlook(lane, seen, ahead, now),
    )


def _turn(ahead: int | None) -> Obstacle:
    return turn_obstacle(ahead, "of its queue must get a slot", "an executor gives it its slot")


def _counted(view: LaneView, now: datetime) -> Iterator[tuple[Gate, PoolId | None]]:
    """Each gate with the pool that it counts in; null where it counts in the lane alone, or not at all."""
    terms, group_key = view.lane.terms, view.lane.group_key
    quotas = iter(_running_quotas(terms))
    for gate in view.gates(now):
        key: str | None = None
        if terms is not None and gate.name is GateName.CONCURRENCY:
            key = limit_pool(terms, group_key)
        elif gate.name is GateName.QUOTA:
            key = quota_pool(next(quotas), group_key)
        elif gate.name is GateName.RATE_LIMIT:
            key = WHOLE
        yield gate, None if key is None else view.pools[key].id


def _running_quotas(terms: EffectivePolicy | None) -> list[Quota]:
    quotas = terms.quotas if terms else ()
    return [quota for quota in quotas if quota.quota_type is QuotaType.RUNNING]


class _Looker:
    """Finds for each gate who holds what it counts. `ahead` are those of the lane that go before `one`."""

    def __init__(
        self, tx: Tx, view: LaneView, one: Waiter, ahead: int | None, now: datetime
    ) -> None:
        self._tx = tx
        self._lane = view.lane
        self._one = one
        self._ahead = ahead
        self._now = now

    async def look(self, gate: Gate, pool: PoolId | None) -> _Seen:
        lane = self._lane
        if gate.name in _LIMITS:
            return await self._own(gate) if pool is None else await self._shared(gate, pool)
        if gate.name is GateName.RATE_LIMIT and pool is not None and gate.until is None:
            return _Seen(_held(gate, tuple(await not_begun(self._tx, pool))), lane.name)
        return _Seen(gate, lane.name)

    async def _own(self, gate: Gate) -> _Seen:
        lane = self._lane
        holders = await slot_holders(self._tx, [lane.id], lane.active_count)
        limit = Limit(gate.limit or 0, self._ahead, elapsed(holders, self._now))
        return _Seen(_held(gate, shown(holders)), lane.name, limit)

    async def _shared(self, gate: Gate, pool: PoolId) -> _Seen:
        """By all lanes that are counted in the pool; their heads compete."""
        terms = self._lane.terms
        sharing = await lanes_sharing(self._tx, terms.policy, pool) if terms else []
        active = sum(each.active_count for each in sharing)
        holders = await slot_holders(self._tx, [each.id for each in sharing], active)
        waiting = [each.id for each in sharing if each.queue_length]
        ahead = await queued_among(self._tx, waiting, self._one, self._lane.ageing)
        limit = Limit(gate.limit or 0, ahead, elapsed(holders, self._now))
        return _Seen(_held(gate, shown(holders)), f"the policy {gate.policy_ref}", limit)


def _held(gate: Gate, holders: tuple[ExecutionId, ...]) -> Gate:
    return msgspec.structs.replace(gate, holders=holders) if gate.is_closed else gate


def _outlook(lane: Lane, seen: list[_Seen], ahead: int | None, now: datetime) -> Outlook:
    gates = {each.gate.name: each.gate for each in seen}
    window, rate = gates.get(GateName.WINDOW), gates.get(GateName.RATE_LIMIT)
    opens_in: float | None = 0.0
    if window is not None and window.is_closed:
        opens_in = _seconds_until(window, now)
    if lane.paused or (rate is not None and (ahead is None or _hangs(rate))):
        opens_in = None
    return Outlook(
        limits=tuple(each.limit for each in seen if each.limit is not None),
        opens_in=opens_in,
        at_least=_rate_takes(lane, rate, ahead or 0, now) if rate is not None else 0.0,
    )


def _hangs(rate: Gate) -> bool:
    """Whether it opens a while after something that has no time yet."""
    return rate.is_closed and rate.until is None


def _rate_takes(lane: Lane, gate: Gate, ahead: int, now: datetime) -> float:
    rate = lane.terms.rate if lane.terms else None
    if rate is None:
        return 0.0
    opens_in = _seconds_until(gate, now) if gate.is_closed else rate.window_seconds
    return rate_seconds(rate, gate.free or 0, opens_in or 0.0, ahead)


def _seconds_until(gate: Gate, now: datetime) -> float | None:
    return None if gate.until is None else max((gate.until - now).total_seconds(), 0.0)
