"""Joining a lane, being given a slot, leaving: all under the lane's lock, so order is commit order.

What is decided is noted for the decision log, which is written with the lanes.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Final

import msgspec

from attune.kernel.errors import Contention, Limited
from attune.kernel.ids import ExecutionId, LaneId, PoolId
from attune.kernel.statuses import ExecutionStatus, one_of
from attune.pipeline.executions.model import Execution, Priority
from attune.pipeline.policies.decide import WHOLE, totals
from attune.pipeline.policies.gates import first_blocker, room
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues import locking
from attune.pipeline.queues.arrivals import Arrivals
from attune.pipeline.queues.decide import NO_CLAIMS, joined, left, promoted, refusal, turns
from attune.pipeline.queues.decisions import Admitted, Item, Joined, Left, Refused
from attune.pipeline.queues.locking import Locked, Locking, Loners
from attune.pipeline.queues.model import (
    Entry,
    Lane,
    QueueTerms,
    State,
    TurnedAway,
    Waiter,
)
from attune.pipeline.queues.promotion import Promotion
from attune.pipeline.queues.rates import tell_starts
from attune.store import schema
from attune.store.database import Answer, Tx

Attempt = tuple[ExecutionId, int]

_LEAVE: Final = """
    DELETE FROM entry WHERE execution = ANY(:ids::bigint[])
    RETURNING execution, lane, state, band, sequence
"""
# What a worker says of an attempt that is not its execution's present one, that nobody has any more, or that cannot end
# in this way, is not true. The execution stays as it is until its end is written. All of it is found by its keys: a plan by the
# state `handed` would pass what all other workers have.
_LEAVE_ATTEMPTS: Final = """
    DELETE FROM entry
     WHERE state NOT IN ('queued', 'ready') AND execution = ANY(ARRAY(
           SELECT x.id FROM execution x
            WHERE x.id = ANY(:ids::bigint[]) AND x.attempt = :attempt AND {sources} FOR UPDATE OF x))
    RETURNING execution, lane, state, band, sequence, attempt
"""
_BACK: Final = """
    UPDATE entry SET state = 'queued', reason = 'pause' WHERE lane = :lane AND state = 'ready'
    RETURNING execution, lane, state, band, sequence
"""
_BACK_AGAIN: Final = """
    UPDATE entry SET state = 'queued', reason = 'rate_limit'
     WHERE execution = ANY(:ids::bigint[]) AND state = 'ready'
    RETURNING execution, lane, state, band, sequence
"""
_STILL_QUEUED: Final = """
    SELECT execution FROM entry WHERE execution = ANY(:ids::bigint[]) AND state = 'queued'
"""


@cache
def _leave_attempts_from(sources: frozenset[ExecutionStatus]) -> str:
    return _LEAVE_ATTEMPTS.format(sources=one_of("x.status", sources))


class _Gone(msgspec.Struct, frozen=True):
    execution: ExecutionId
    lane: LaneId
    state: State
    band: Priority
    sequence: int


class _GoneAttempt(_Gone, frozen=True):
    attempt: int

    @property
    def key(self) -> Attempt:
        return self.execution, self.attempt


class Lanes(Promotion):
    """The lanes that a transaction holds. `arrivals` joined in it and found a free slot at once."""

    def __init__(self, tx: Tx, held: Locked, terms: QueueTerms, now: datetime) -> None:
        super().__init__(tx, held, terms, now)
        self.arrivals = Arrivals()
        self._expected: dict[LaneId, int] = defaultdict(int)
        self._asked: Locking | None = None
        self._check: Callable[[], None] = lambda: None

    @property
    def gave_slots(self) -> bool:
        """Whether anybody waits for a worker by this transaction."""
        return bool(self.arrivals.entries or self.promoted)

    async def ask(self, ids: Collection[LaneId], loners: Loners) -> None:
        """Lock these along with the statements that follow; they are held from `settle` on."""
        alone = loners.are(ids)
        self._asked = await locking.ask(self.tx, ids, self.held, alone=alone)
        if alone:
            self._check = lambda: loners.check(ids, self.held)
        else:
            self.tx.on_commit(lambda: loners.learn(self.held.lanes.values()))

    async def settle(self) -> None:
        await self.tx.settle()
        asked, self._asked = self._asked, None
        if asked is not None:
            asked.taken()
            self._check()

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
                self.ledger.note(lane, Refused(None, error.code, str(error)))
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
        self,
        executions: Sequence[Execution],
        places: Mapping[ExecutionId, LaneId],
        unwritten: Collection[ExecutionId],
    ) -> list[TurnedAway]:
        """Each to the end of its lane, in the given order; those that were turned away, and why.

        `unwritten` have no rows yet, and get them with their entries; the `arrivals` are left to the caller.
        """
        by_lane: dict[LaneId, list[Execution]] = defaultdict(list)
        for one in executions:
            by_lane[places[one.id]].append(one)
        turned: list[TurnedAway] = []
        entries: list[Entry] = []
        for lane_id, some in by_lane.items():
            taken, refused = await self._taken(self.held.lanes[lane_id], some)
            turned += refused
            entries += await self._enter(lane_id, taken)
        await self._write([one for one in executions if one.id in unwritten], entries)
        await self.promote()
        for lane_id, some in by_lane.items():
            turned += await self._turn_away(self.held.lanes[lane_id], some)
        self._expected.clear()
        return turned

    async def _write(self, executions: Sequence[Execution], entries: Sequence[Entry]) -> None:
        ready = {one.execution: one for one in entries if one.state is State.READY}
        self.arrivals.add(ready.values(), [one for one in executions if one.id in ready])
        await self.tx.insert_later(
            schema.execution, [one for one in executions if one.id not in ready]
        )
        await self.tx.insert_later(
            schema.entry, [one for one in entries if one.execution not in ready]
        )

    async def leave(
        self,
        ids: Collection[ExecutionId],
        started: Mapping[ExecutionId, datetime | None] | None = None,
    ) -> set[ExecutionId]:
        """Free whatever these held, and give it to the next in line; those that were there.

        `started` tells when each began, for those that did.
        """
        gone = await self.tx.all(_Gone, _LEAVE, ids=sorted(ids)) if ids else []
        await self._gone(gone, started or {})
        await self.promote()
        return {one.execution for one in gone}

    async def end_attempts(
        self, ended: Mapping[frozenset[ExecutionStatus], Mapping[Attempt, datetime | None]]
    ) -> dict[Attempt, str]:
        """The same for attempts that workers ended; the action of each that counted. Who is next stays `unwritten`.

        They come by the statuses that they may end from, each with when it began.
        """
        leaving = [answer for each in ended.items() for answer in await self._leave_attempts(*each)]
        await self.settle()
        gone = [one for answer in leaving for one in answer.rows]
        started = {key: began for some in ended.values() for key, began in some.items()}
        await self._gone(gone, {one.execution: started[one.key] for one in gone})
        await self.promote(unwritten=True)
        return {one.key: self.held.lanes[one.lane].action_ref for one in gone}

    async def _leave_attempts(
        self, sources: frozenset[ExecutionStatus], attempts: Collection[Attempt]
    ) -> list[Answer[_GoneAttempt]]:
        """A statement for each number of an attempt; it is 1 for most."""
        sql = _leave_attempts_from(sources)
        ids: dict[int, list[ExecutionId]] = defaultdict(list)
        for execution, attempt in sorted(attempts):
            ids[attempt].append(execution)
        return [
            await self.tx.answer_later(_GoneAttempt, sql, ids=some, attempt=attempt)
            for attempt, some in ids.items()
        ]

    async def _gone(
        self, gone: Sequence[_Gone], started: Mapping[ExecutionId, datetime | None]
    ) -> None:
        await locking.lock(self.tx, {one.lane for one in gone}, self.held)
        by_lane: dict[LaneId, list[_Gone]] = defaultdict(list)
        for one in gone:
            by_lane[one.lane].append(one)
        for lane_id, some in by_lane.items():
            await self._let_go(self.held.lanes[lane_id], some, started)

    async def take_slots_back(self, lane_id: LaneId) -> None:
        """Whoever has a slot and no worker waits again, where it stood."""
        gone = await self.tx.all(_Gone, _BACK, lane=lane_id)
        await self._wait_again(self.held.lanes[lane_id], gone, GateName.PAUSE)

    async def begin_anew(self, lost: Mapping[ExecutionId, LaneId], *, began: bool) -> None:
        """Attempts that go on with the next: each start counts, so under a rate they wait for it again.

        `began`: they may have begun, so for a rate they did.
        """
        await locking.lock(self.tx, set(lost.values()), self.held)
        lanes = [self.held.lanes[one] for one in sorted(set(lost.values()))]
        for lane in lanes:
            if lane.rate is not None:
                ids = sorted(one for one, where in lost.items() if where == lane.id)
                if began:
                    await tell_starts(self.tx, dict.fromkeys(ids, self.now))
                gone = await self.tx.all(_Gone, _BACK_AGAIN, ids=ids)
                await self._wait_again(lane, gone, GateName.RATE_LIMIT)

    async def _wait_again(self, lane: Lane, gone: Sequence[_Gone], reason: GateName) -> None:
        items: list[Item] = []
        for one in sorted(gone, key=lambda each: each.sequence):
            items.append(Left(one.execution, one.sequence, one.band, held=True))
            items.append(Joined(one.execution, one.sequence, one.band, reason))
        self.change(promoted(lane, -len(gone)), *items)
        self.count(lane, active=-len(gone))
        if lane.rate is not None:
            await self.rates.ended(dict.fromkeys(one.execution for one in gone))

    async def adopt_starts(self, ids: Collection[LaneId]) -> None:
        """These lanes, of one policy, are bound by its rate from now on."""
        pools = {self.pools_of(self.held.lanes[one])[WHOLE].id for one in ids}
        for pool in sorted(pools):
            await self.rates.adopt(pool, ids)

    async def _refusal(
        self, lane: Lane, more: int, claims: Mapping[PoolId, int] = NO_CLAIMS
    ) -> Limited | None:
        if lane.max_concurrent is None and lane.terms is None and not lane.paused:
            return None
        found = await self.gates(lane)
        longest = lane.longest or self.terms.max_queue_length
        return refusal(lane, self.pools_of(lane), found, more, longest, claims)

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
                self.ledger.note(lane, Refused(one.id, error.code, str(error)))
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
            _STILL_QUEUED,
            ids=sorted(one.id for one in some),
        )
        text = f"Cancelled by the policy '{blocker.policy_ref}': {blocker.text}."
        self.ledger.note(lane, *(Refused(one, blocker.name, text) for one in waiting))
        await self.leave(waiting)
        return [TurnedAway(one, ExecutionStatus.CANCELLED, text) for one in waiting]

    async def _let_go(
        self, lane: Lane, gone: list[_Gone], started: Mapping[ExecutionId, datetime | None]
    ) -> None:
        items = [Left(e.execution, e.sequence, e.band, e.state is not State.QUEUED) for e in gone]
        self.change(left(lane, [one.state for one in gone]), *items)
        held = [one.execution for one in gone if one.state is not State.QUEUED]
        self.count(lane, active=-len(held))
        if lane.rate is not None:
            await self.rates.ended({one: started.get(one) for one in held})


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


async def lanes_by_id(tx: Tx, ids: Collection[LaneId], terms: QueueTerms, now: datetime) -> Lanes:
    return Lanes(tx, await locking.lock(tx, ids), terms, now)


async def lanes_of_executions(
    tx: Tx, ids: Collection[ExecutionId], terms: QueueTerms, now: datetime
) -> Lanes:
    """Lock the lanes in which these stand."""
    lanes = await lanes_by_id(tx, await locking.of_executions(tx, ids), terms, now)
    if not lanes.held.lanes.keys() >= set(await locking.of_executions(tx, ids)):
        raise Contention("An execution has moved to another lane meanwhile.")
    return lanes


async def lanes_with_waiting(tx: Tx, terms: QueueTerms, now: datetime) -> Lanes:
    return await lanes_by_id(tx, await locking.with_waiting(tx), terms, now)
