"""Who may go, and why the others wait. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from attune.kernel.errors import Limited
from attune.kernel.ids import PoolId
from attune.pipeline.executions.decide import needs_of
from attune.pipeline.executions.model import Execution
from attune.pipeline.policies.decide import WHOLE, limit_pool, quota_pool, totals
from attune.pipeline.policies.gates import (
    Starts,
    concurrency_gate,
    pause_gate,
    quota_gate,
    rate_gate,
    room,
    window_gate,
)
from attune.pipeline.policies.model import EffectivePolicy, Gate, GateName, QuotaType
from attune.pipeline.queues.model import Entry, Lane, Pool, State, Turn, W, Waits

NO_STARTS: Final = Starts()
_RETRY_AFTER: Final = 60
NO_CLAIMS: Final[Mapping[PoolId, int]] = {}


def gates(
    lane: Lane, pools: Mapping[str, Pool], starts: Mapping[PoolId, Starts], now: datetime
) -> list[Gate]:
    """Every gate between the lane's head and its slot, the first blocker first. `pools` are the lane's, by key."""
    found = [pause_gate()] if lane.paused else []
    terms = lane.terms
    if terms is None:
        return found
    if terms.windows or terms.blackouts:
        found.append(window_gate(terms, now))
    if lane.max_concurrent is not None:
        active = _active(lane, terms, pools)
        found.append(concurrency_gate(terms.policy_ref, lane.max_concurrent, active))
    for quota in terms.quotas:
        if quota.quota_type is QuotaType.RUNNING:
            pool = pools[quota_pool(quota, lane.group_key)]
            found.append(quota_gate(terms.policy_ref, quota, pool.active_count))
    if terms.rate is not None:
        counted = starts.get(pools[WHOLE].id, NO_STARTS)
        found.append(rate_gate(terms.policy_ref, terms.rate, counted))
    return found


def pool_limit(lane: Lane, key: str) -> int | None:
    """How many slots the lane's policy lets a pool of it give; null where the pool counts for nothing of the kind."""
    terms = lane.terms
    if terms is None:
        return None
    found = [
        quota.limit
        for quota in terms.quotas
        if quota.quota_type is QuotaType.RUNNING and quota_pool(quota, lane.group_key) == key
    ]
    if lane.max_concurrent is not None and limit_pool(terms, lane.group_key) == key:
        found.append(lane.max_concurrent)
    return min(found, default=None)


def _active(lane: Lane, terms: EffectivePolicy, pools: Mapping[str, Pool]) -> int:
    key = limit_pool(terms, lane.group_key)
    return lane.active_count if key is None else pools[key].active_count


def refusal(
    lane: Lane,
    pools: Mapping[str, Pool],
    found: Sequence[Gate],
    more: int,
    longest: int,
    claims: Mapping[PoolId, int] = NO_CLAIMS,
) -> Limited | None:
    """Why the lane cannot take so many more; null if it can. `longest` is how many may wait in it.

    `claims` is how many more a pool is asked to accept, where others of its lanes are asked together with this one.
    """
    terms = lane.terms
    for quota in totals(terms):
        pool = pools[quota_pool(quota, lane.group_key)]
        if pool.total_accepted + max(more, claims.get(pool.id, 0)) > quota.limit:
            return _quota_used(lane, terms, quota.limit, pool.total_accepted)
    free = room(found)
    if free is None:
        return None
    waiting = lane.queue_length + more - (0 if lane.queue_length else free)
    return _full(lane, longest) if waiting > longest and not _turns_away(lane, found) else None


def _turns_away(lane: Lane, found: Sequence[Gate]) -> bool:
    """Whether those that find no slot leave again: where the limit is the first gate that closes behind the others."""
    free = room(found)
    closing = (gate for gate in found if gate.free is not None and gate.free <= (free or 0))
    first = next(closing, None)
    return lane.cancels and first is not None and first.name is GateName.CONCURRENCY


def _full(lane: Lane, longest: int) -> Limited:
    return Limited(
        f"Queue full (max length: {longest}): {lane.queue_length} wait in the queue {lane.name}.",
        queue=lane.name,
        length=lane.queue_length,
        limit=longest,
        retry_after=_RETRY_AFTER,
    )


def _quota_used(lane: Lane, terms: EffectivePolicy | None, limit: int, used: int) -> Limited:
    policy_ref = terms.policy_ref if terms else ""
    return Limited(
        f"The quota executions_total of the policy '{policy_ref}' is used up: {used} of {limit}"
        f" were accepted in {lane.name}.",
        quota="executions_total",
        policy_ref=policy_ref,
        limit=limit,
        retry_after=_RETRY_AFTER,
    )


def joined(
    lane: Lane, executions: Sequence[Execution], free: int | None, reason: GateName, now: datetime
) -> tuple[Lane, list[Entry]]:
    """The lane after these have joined it, in this order, and their entries.

    Those for whom there is a slot and nobody ahead have it at once. The time of joining never falls within a lane,
    whatever the clocks of several processes say, so age orders entries as their sequence does.
    """
    at = max(now, lane.last_enqueued_at)
    numbered = list(enumerate(executions, start=lane.next_sequence))
    admitted = _admitted(lane, numbered, free)
    entries = [
        _entry(lane, e, number, at, None if number in admitted else reason)
        for number, e in numbered
    ]
    return (
        msgspec.structs.replace(
            lane,
            next_sequence=lane.next_sequence + len(entries),
            queue_length=lane.queue_length + len(entries) - len(admitted),
            active_count=lane.active_count + len(admitted),
            total_enqueued=lane.total_enqueued + len(entries),
            last_enqueued_at=at,
        ),
        entries,
    )


def promoted(lane: Lane, count: int) -> Lane:
    """The lane after so many of those that waited got a slot."""
    return msgspec.structs.replace(
        lane, queue_length=lane.queue_length - count, active_count=lane.active_count + count
    )


def left(lane: Lane, states: Sequence[State]) -> Lane:
    """The lane after entries in these states ended: a slot that one held is free, whoever takes it next."""
    waiting = sum(state is State.QUEUED for state in states)
    return msgspec.structs.replace(
        lane,
        queue_length=lane.queue_length - waiting,
        active_count=lane.active_count - (len(states) - waiting),
        total_completed=lane.total_completed + len(states),
    )


def due(waiter: Waits, ageing: float | None) -> tuple[object, ...]:
    """Sorts waiters by whose turn it is, in one lane or among the heads of several.

    With ageing, a band is worth so many seconds of waiting: whoever came four times that earlier goes before a
    CRITICAL one, so nothing starves.
    """
    if ageing is None:
        return (waiter.band, waiter.enqueued_at, waiter.sequence)
    raised = waiter.enqueued_at + timedelta(seconds=ageing * waiter.band)
    return (raised, waiter.band, waiter.sequence)


def turns(waiting: Iterable[W], count: int, ageing: float | None) -> list[Turn[W]]:
    """Who of a lane goes next, and whom each passes over.

    `waiting` has the first of every band: as many as may go, and one more, so that who is passed over is among them.
    """
    bands: dict[int, deque[W]] = {}
    for one in sorted(waiting, key=lambda one: one.sequence):
        bands.setdefault(one.band, deque()).append(one)
    found: list[Turn[W]] = []
    while len(bands) > 1 and len(found) < count:
        band = min(bands, key=lambda each: due(bands[each][0], ageing))
        one = bands[band].popleft()
        if not bands[band]:
            del bands[band]
        found.append(_turn(one, [line[0] for line in bands.values()]))
    for last in bands.values():  # in one band all go as they came, and pass nobody over
        found += [Turn(one) for one in islice(last, count - len(found))]
    return found


def _turn(one: W, heads: Sequence[W]) -> Turn[W]:
    """`heads` are the first of those that wait on, by band; a smaller number is never behind its band's head."""
    passed = min((head.sequence for head in heads if head.sequence < one.sequence), default=None)
    if any(head.band < one.band for head in heads):
        return Turn(one, passed, "ageing")
    return Turn(one, passed, None if passed is None else "band")


def _admitted(lane: Lane, numbered: list[tuple[int, Execution]], free: int | None) -> set[int]:
    if lane.queue_length > 0:
        return set()
    if free is None or free >= len(numbered):
        return {number for number, _ in numbered}
    by_band = sorted(numbered, key=lambda pair: (pair[1].priority, pair[0]))
    return {number for number, _ in by_band[:free]}


def _entry(
    lane: Lane, one: Execution, sequence: int, at: datetime, reason: GateName | None
) -> Entry:
    return Entry(
        execution=one.id,
        lane=lane.id,
        band=one.priority,
        sequence=sequence,
        state=State.READY if reason is None else State.QUEUED,
        reason=reason or GateName.WORKER,
        enqueued_at=at,
        attempt=one.attempt,
        definition=one.definition,
        needs=needs_of(one),
    )
