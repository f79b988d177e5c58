"""Joining a lane, being given a slot, leaving: all under the lane's lock, so order is commit order.

What is decided is noted for the decision log, which is written with the lanes.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.errors import Limited
from attune.kernel.ids import ExecutionId, LaneId, PolicyId, PoolId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Execution, Priority
from attune.pipeline.policies.decide import WHOLE, totals
from attune.pipeline.policies.gates import first_blocker, opens_at, room
from attune.pipeline.policies.model import Gate, GateName
from attune.pipeline.queues import locking
from attune.pipeline.queues.decide import (
    NO_CLAIMS,
    due,
    gates,
    joined,
    left,
    promoted,
    refusal,
    turns,
)
from attune.pipeline.queues.decisions import Admitted, Item, Joined, Left, Refused
from attune.pipeline.queues.ledger import Ledger
from attune.pipeline.queues.locking import Locked
from attune.pipeline.queues.model import (
    Entry,
    Lane,
    Pool,
    QueueTerms,
    State,
    Turn,
    TurnedAway,
    Waiter,
)
from attune.pipeline.queues.rates import GATES, Rates
from attune.store import schema
from attune.store.database import Tx

_SAVE: Final = """
    UPDATE lane SET paused = v.paused, next_sequence = v.next_sequence, queue_length = v.queue_length,
           active_count = v.active_count, total_enqueued = v.total_enqueued,
           total_completed = v.total_completed, last_enqueued_at = v.last_enqueued_at,
           max_concurrent = v.max_concurrent, reason = v.reason, retry_at = v.retry_at,
           next_decision = v.next_decision, updated = :now
      FROM ROWS(:lanes AS v(id bigint, paused boolean, next_sequence bigint, queue_length int,
                            active_count int, total_enqueued bigint, total_completed bigint,
                            last_enqueued_at timestamptz, max_concurrent int, reason text,
                            retry_at timestamptz, next_decision bigint))
     WHERE lane.id = v.id
"""
_SAVE_POOLS: Final = """
    UPDATE pool SET active_count = v.active_count, total_accepted = v.total_accepted,
           next_decision = v.next_decision, updated = :now
      FROM ROWS(:pools AS v(id bigint, active_count int, total_accepted bigint, next_decision bigint))
     WHERE pool.id = v.id
"""
_NEXT: Final = """
    SELECT execution, band, sequence, enqueued_at FROM entry
     WHERE lane = :lane AND band = :band AND state = 'queued' ORDER BY sequence LIMIT :count
"""
_HEADS: Final = """
    SELECT execution, band, sequence, enqueued_at FROM entry
     WHERE execution = ANY(ARRAY(
           SELECT (SELECT e.execution FROM entry e
                    WHERE e.lane = l.id AND e.band = b.band AND e.state = 'queued'
                    ORDER BY e.sequence LIMIT 1)
             FROM lane l
            CROSS JOIN (SELECT 0 AS band UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                        UNION ALL SELECT 4) b
            WHERE l.id = :lane))
"""
_ADMIT: Final = """
    UPDATE entry SET state = 'ready', reason = 'worker' WHERE execution = ANY(:ids::bigint[])
"""
_LEAVE: Final = """
    DELETE FROM entry WHERE execution = ANY(:ids::bigint[])
    RETURNING execution, lane, state, band, sequence
"""
_BACK: Final = """
    UPDATE entry SET state = 'queued', reason = 'pause' WHERE lane = :lane AND state = 'ready'
    RETURNING execution, lane, state, band, sequence
"""
_ALL: Final = 2**31 - 1


class _Gone(msgspec.Struct, frozen=True):
    execution: ExecutionId
    lane: LaneId
    state: State
    band: Priority
    sequence: int


class Lanes:
    """The lanes that a transaction holds. What changes is written once, by `save`.

    `promoted` are those that had waited and were given a slot meanwhile.
    """

    def __init__(self, tx: Tx, held: Locked, terms: QueueTerms, now: datetime) -> None:
        self.tx = tx
        self.now = now
        self.held = held
        self.ledger = Ledger()
        self.promoted: set[ExecutionId] = set()
        self._terms = terms
        self._rates = Rates(tx, now)
        self._changed: set[LaneId] = set()
        self._changed_pools: set[PoolId] = set()
        self._expected: dict[LaneId, int] = defaultdict(int)

    async def refusal(self, places: Mapping[ExecutionId, LaneId]) -> Limited | None:
        """Why these, together, are not taken; if they are, later ones find them counted."""
        more: dict[LaneId, int] = defaultdict(int)
        for lane_id in places.values():
            more[lane_id] += 1
        claims = self._claims(more)
        for lane_id, count in more.items():
            lane = self.held.lanes[lane_id]
            error = await self._refusal(lane, count + self._expected[lane_id], claims)
            if error is not None:
                self._note(lane, Refused(None, error.code, str(error)))
                return error
        for lane_id, count in more.items():
            self._expected[lane_id] += count
        return None

    def _claims(self, more: Mapping[LaneId, int]) -> dict[PoolId, int]:
        """How many more each pool is to accept for all of its lanes, with those that were taken just before."""
        claims: dict[PoolId, int] = defaultdict(int)
        for lane_id in {*more, *self._expected}:
            for pool in self.held.lanes[lane_id].pools or ():
                claims[pool] += more.get(lane_id, 0) + self._expected.get(lane_id, 0)
        return claims

    async def join(
        self, executions: Sequence[Execution], places: Mapping[ExecutionId, LaneId]
    ) -> list[TurnedAway]:
        """Each to the end of its lane, in the given order; those that were turned away, and why."""
        by_lane: dict[LaneId, list[Execution]] = defaultdict(list)
        for one in executions:
            by_lane[places[one.id]].append(one)
        turned: list[TurnedAway] = []
        entries: list[Entry] = []
        for lane_id, some in by_lane.items():
            taken, refused = await self._taken(self.held.lanes[lane_id], some)
            turned += refused
            entries += await self._enter(lane_id, taken)
        await self.tx.insert(schema.entry, entries)
        await self.promote()
        for lane_id, some in by_lane.items():
            turned += await self._turn_away(self.held.lanes[lane_id], some)
        self._expected.clear()
        return turned

    async def leave(
        self,
        ids: Collection[ExecutionId],
        started: Mapping[ExecutionId, datetime | None] | None = None,
    ) -> set[ExecutionId]:
        """Free whatever these held, and give it to the next in line; those that were there.

        `started` tells when each began, for those that did.
        """
        gone = await self.tx.all(_Gone, _LEAVE, ids=sorted(ids)) if ids else []
        await locking.lock(self.tx, {one.lane for one in gone}, self.held)
        by_lane: dict[LaneId, list[_Gone]] = defaultdict(list)
        for one in gone:
            by_lane[one.lane].append(one)
        for lane_id, some in by_lane.items():
            await self._let_go(self.held.lanes[lane_id], some, started or {})
        await self.promote()
        return {one.execution for one in gone}

    async def promote(self) -> None:
        """Give every free slot to whoever is next: in each lane, and among lanes that share a pool."""
        for lane in list(self.held.lanes.values()):
            if lane.pools is None and lane.queue_length and not self.is_deferred(lane):
                await self._promote(lane)
        for policy in self._sharing():
            await self._promote_sharing(policy)
        for lane in list(self.held.lanes.values()):
            await self._settle(lane)

    async def admit(self, lane_id: LaneId, count: int) -> list[ExecutionId]:
        """Admit up to so many whose turn it is, as far as the gates let them; those that were."""
        lane = self.held.lanes.get(lane_id)
        if lane is None:
            return []
        free = room(await self.gates(lane))
        given = await self._turns(lane, count if free is None else min(free, count))
        await self._admit(lane, given)
        await self._settle(self.held.lanes[lane_id])
        return [turn.waiter.execution for turn in given]

    async def take_slots_back(self, lane_id: LaneId) -> None:
        """Whoever has a slot and no worker waits again, where it stood."""
        gone = await self.tx.all(_Gone, _BACK, lane=lane_id)
        lane = self.held.lanes[lane_id]
        items: list[Item] = []
        for one in sorted(gone, key=lambda each: each.sequence):
            items.append(Left(one.execution, one.sequence, one.band, held=True))
            items.append(Joined(one.execution, one.sequence, one.band, GateName.PAUSE))
        self.change(promoted(lane, -len(gone)), *items)
        self.count(lane, active=-len(gone))
        if lane.terms is not None and lane.terms.rate is not None:
            await self._rates.ended(dict.fromkeys(one.execution for one in gone))

    async def gates(self, lane: Lane) -> list[Gate]:
        pools = self._pools_of(lane)
        if lane.terms is not None and lane.terms.rate is not None:
            await self._rates.load(pools[WHOLE].id, lane.terms.rate)
        return gates(lane, pools, self._rates.known, self.now)

    async def adopt_starts(self, ids: Collection[LaneId]) -> None:
        """These lanes, of one policy, are bound by its rate from now on."""
        pools = {self._pools_of(self.held.lanes[one])[WHOLE].id for one in ids}
        for pool in sorted(pools):
            await self._rates.adopt(pool, ids)

    def is_deferred(self, lane: Lane) -> bool:
        """Whether a queue outside the database proposes who is next in it."""
        return self._terms.deferred and lane.pools is None and not lane.cancels

    def change(self, lane: Lane, *items: Item) -> None:
        """The lane as it is from now on, with what is to be noted of the change."""
        if items:
            self._note(self.held.lanes[lane.id], *items)
        self.held.lanes[lane.id] = lane
        self._changed.add(lane.id)

    def count(
        self, lane: Lane, *, active: int = 0, accepted: int = 0, admitted: bool = False
    ) -> None:
        """Count in every pool of the lane. `admitted` tells that the slots were given, not moved."""
        for pool_id in lane.pools or ():
            pool = self.held.pools[pool_id]
            if active:
                self.ledger.note_pool(pool, lane, active, admitted=admitted)
            self.held.pools[pool_id] = msgspec.structs.replace(
                pool,
                active_count=pool.active_count + active,
                total_accepted=pool.total_accepted + accepted,
            )
            self._changed_pools.add(pool_id)

    async def save(self) -> None:
        await self._log()
        if self._changed:
            lanes = [_saved(self.held.lanes[lane_id]) for lane_id in sorted(self._changed)]
            await self.tx.execute(_SAVE, lanes=lanes, now=self.now)
        if self._changed_pools:
            pools = [self.held.pools[pool_id] for pool_id in sorted(self._changed_pools)]
            rows = [
                (pool.id, pool.active_count, pool.total_accepted, pool.next_decision)
                for pool in pools
            ]
            await self.tx.execute(_SAVE_POOLS, pools=rows, now=self.now)
        self._changed.clear()
        self._changed_pools.clear()

    async def _log(self) -> None:
        lanes, pools = self.ledger.lanes(), self.ledger.pools()
        await self.ledger.write(self.tx, self.held.lanes, self.held.pools, self.now)
        for lane_id in lanes:
            lane = self.held.lanes[lane_id]
            self.change(msgspec.structs.replace(lane, next_decision=lane.next_decision + 1))
        for pool_id in pools:
            pool = self.held.pools[pool_id]
            following = pool.next_decision + 1
            self.held.pools[pool_id] = msgspec.structs.replace(pool, next_decision=following)

    async def _refusal(
        self, lane: Lane, more: int, claims: Mapping[PoolId, int] = NO_CLAIMS
    ) -> Limited | None:
        if lane.max_concurrent is None and lane.terms is None and not lane.paused:
            return None
        found = await self.gates(lane)
        longest = lane.longest or self._terms.max_queue_length
        return refusal(lane, self._pools_of(lane), found, more, longest, claims)

    async def _taken(
        self, lane: Lane, some: list[Execution]
    ) -> tuple[list[Execution], list[TurnedAway]]:
        """As many as the lane takes. Who asked by API was told before; what rules asked for ends here, told in its result."""
        if await self._refusal(lane, len(some)) is None:
            return some, []
        taken: list[Execution] = []
        turned: list[TurnedAway] = []
        for one in some:
            error = await self._refusal(lane, len(taken) + 1)
            if error is None:
                taken.append(one)
            else:
                self._note(lane, Refused(one.id, error.code, str(error)))
                turned.append(TurnedAway(one.id, ExecutionStatus.FAILED, str(error)))
        return taken, turned

    async def _enter(self, lane_id: LaneId, some: Sequence[Execution]) -> list[Entry]:
        """A lane that shares nothing gives its free slots at once; otherwise all wait until `promote`."""
        lane = self.held.lanes[lane_id]
        found = await self.gates(lane)
        blocker = first_blocker(found)
        reason = blocker.name if blocker else self._usual_reason(lane)
        free = 0 if lane.pools is not None or self.is_deferred(lane) else room(found)
        after, entries = joined(lane, some, free, reason, self.now)
        self.change(after, *_noted(entries))
        self.count(lane, accepted=len(entries) if totals(lane.terms) else 0)
        return entries

    def _usual_reason(self, lane: Lane) -> GateName:
        """For one that finds a free slot, and others before it."""
        return GateName.TURN if lane.max_concurrent is None else GateName.CONCURRENCY

    async def _turn_away(self, lane: Lane, some: Sequence[Execution]) -> list[TurnedAway]:
        """Method cancel: what joined just now and found no room under the limit leaves again."""
        if not lane.cancels or lane.queue_length == 0:
            return []
        blocker = first_blocker(await self.gates(lane))
        if blocker is None or blocker.name is not GateName.CONCURRENCY:
            return []
        waiting = await self.tx.all(
            ExecutionId,
            "SELECT execution FROM entry WHERE execution = ANY(:ids::bigint[]) AND state = 'queued'",
            ids=sorted(one.id for one in some),
        )
        text = f"Cancelled by the policy '{blocker.policy_ref}': {blocker.text}."
        self._note(lane, *(Refused(one, blocker.name, text) for one in waiting))
        await self.leave(waiting)
        return [TurnedAway(one, ExecutionStatus.CANCELLED, text) for one in waiting]

    async def _let_go(
        self, lane: Lane, gone: list[_Gone], started: Mapping[ExecutionId, datetime | None]
    ) -> None:
        items = [Left(e.execution, e.sequence, e.band, e.state is not State.QUEUED) for e in gone]
        self.change(left(lane, [one.state for one in gone]), *items)
        held = [one.execution for one in gone if one.state is not State.QUEUED]
        self.count(lane, active=-len(held))
        if lane.terms is not None and lane.terms.rate is not None:
            await self._rates.ended({one: started.get(one) for one in held})

    async def _promote(self, lane: Lane) -> None:
        free = room(await self.gates(lane))
        if free == 0:
            return
        count = lane.queue_length if free is None else min(free, lane.queue_length)
        await self._admit(lane, await self._turns(lane, count))

    def _sharing(self) -> list[PolicyId]:
        """The policies under which lanes that are held share something, or did: a lane that left frees its share."""
        lanes = self.held.lanes.values()
        sharing = {lane.terms.policy for lane in lanes if lane.pools and lane.terms}
        return sorted(sharing | {self.held.pools[one].policy for one in self._changed_pools})

    async def _promote_sharing(self, policy: PolicyId) -> None:
        """Among the heads of all lanes under the policy: by band, then age, whoever finds every gate open."""
        waiting = await locking.waiting_under(self.tx, policy)
        waiting = sorted({*waiting, *(one.id for one in self._waiting_here(policy))})
        if not waiting:
            return
        await locking.lock(self.tx, waiting, self.held)
        open_lanes = [await self._head(lane_id) for lane_id in waiting]
        heads = [head for head in open_lanes if head is not None]
        while heads:
            head = min(heads, key=lambda one: (due(one[1].waiter, one[0].ageing), one[0].id))
            heads.remove(head)
            lane = self.held.lanes[head[0].id]
            if room(await self.gates(lane)) == 0:
                continue
            await self._admit(lane, [head[1]])
            following = await self._head(lane.id)
            heads += [following] if following is not None else []

    def _waiting_here(self, policy: PolicyId) -> list[Lane]:
        lanes = self.held.lanes.values()
        return [e for e in lanes if e.terms and e.terms.policy == policy and e.queue_length]

    async def _head(self, lane_id: LaneId) -> tuple[Lane, Turn] | None:
        """Whose turn it is in the lane, if anyone waits and the lane's gates are open."""
        lane = self.held.lanes[lane_id]
        if lane.queue_length == 0 or room(await self.gates(lane)) == 0:
            return None
        found = await self._turns(lane, 1)
        return (lane, found[0]) if found else None

    async def _turns(self, lane: Lane, count: int) -> list[Turn]:
        """The first of every band: without ageing, as many as it takes to fill the count."""
        if count == 0:
            return []
        heads = await self.tx.all(Waiter, _HEADS, lane=lane.id)
        if count == 1:
            return turns(heads, 1, lane.ageing)
        waiting = list(heads)
        needed = count
        for head in sorted(heads, key=lambda one: one.band):
            if needed <= 0:
                break
            some = await self.tx.all(
                Waiter, _NEXT, lane=lane.id, band=head.band, count=min(count + 1, _ALL)
            )
            waiting = [one for one in waiting if one.band is not head.band] + some
            needed -= len(some) if lane.ageing is None else 0
        return turns(waiting, count, lane.ageing)

    async def _admit(self, lane: Lane, given: Sequence[Turn]) -> None:
        if not given:
            return
        ids = [turn.waiter.execution for turn in given]
        await self.tx.execute(_ADMIT, ids=ids)
        items = [
            Admitted(t.waiter.execution, t.waiter.sequence, t.waiter.band, t.passed_over, t.rule)
            for t in given
        ]
        self.change(promoted(lane, len(given)), *items)
        self.count(lane, active=len(given), admitted=True)
        if lane.terms is not None and lane.terms.rate is not None:
            await self._rates.admit(self._pools_of(lane)[WHOLE].id, ids)
        self.promoted.update(ids)

    async def _settle(self, lane: Lane) -> None:
        """What its head waits for now, and when to look again by itself."""
        found = await self.gates(lane) if lane.queue_length else []
        blocker = first_blocker(found)
        reason = blocker.name if blocker else None
        if lane.queue_length and reason is None:
            reason = GateName.TURN
        retry_at = opens_at(found)
        if (reason, retry_at) == (lane.reason, lane.retry_at):
            return
        self.change(msgspec.structs.replace(lane, reason=reason, retry_at=retry_at))
        if reason is not lane.reason:
            self._note(lane)
        if retry_at is not None:
            self.tx.wake(GATES)

    def _pools_of(self, lane: Lane) -> dict[str, Pool]:
        return {self.held.pools[one].key: self.held.pools[one] for one in lane.pools or ()}

    def _note(self, lane: Lane, *items: Item) -> None:
        self.ledger.note(lane, *items)


def _noted(entries: Sequence[Entry]) -> list[Item]:
    """Joining at once is one note; where some wait, the order in which the others were admitted is told, too."""
    if all(one.state is State.READY for one in entries):
        return [Joined(one.execution, one.sequence, one.band) for one in entries]
    reason = next(one.reason for one in entries if one.state is State.QUEUED)
    items: list[Item] = [Joined(e.execution, e.sequence, e.band, reason) for e in entries]
    waiters = [Waiter(e.execution, e.band, e.sequence, e.enqueued_at) for e in entries]
    admitted = sum(one.state is State.READY for one in entries)
    items += [
        Admitted(t.waiter.execution, t.waiter.sequence, t.waiter.band, t.passed_over, t.rule)
        for t in turns(waiters, admitted, None)
    ]
    return items


def _saved(lane: Lane) -> tuple[object, ...]:
    return (
        lane.id,
        lane.paused,
        lane.next_sequence,
        lane.queue_length,
        lane.active_count,
        lane.total_enqueued,
        lane.total_completed,
        lane.last_enqueued_at,
        lane.max_concurrent,
        lane.reason,
        lane.retry_at,
        lane.next_decision,
    )


async def lanes_by_id(tx: Tx, ids: Collection[LaneId], terms: QueueTerms, now: datetime) -> Lanes:
    return Lanes(tx, await locking.lock(tx, ids), terms, now)


async def lanes_of_executions(
    tx: Tx, ids: Collection[ExecutionId], terms: QueueTerms, now: datetime
) -> Lanes:
    """Lock the lanes in which these stand."""
    return await lanes_by_id(tx, await locking.of_executions(tx, ids), terms, now)


async def lanes_with_waiting(tx: Tx, terms: QueueTerms, now: datetime) -> Lanes:
    return await lanes_by_id(tx, await locking.with_waiting(tx), terms, now)
