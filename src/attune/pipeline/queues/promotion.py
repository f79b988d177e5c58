"""Who is next: in a lane, and among the lanes that share something."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId, PolicyId
from attune.pipeline.policies.decide import WHOLE
from attune.pipeline.policies.gates import first_blocker, opens_at, room
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues import locking
from attune.pipeline.queues.decide import due, promoted, turns
from attune.pipeline.queues.decisions import Admitted
from attune.pipeline.queues.holding import Holding
from attune.pipeline.queues.locking import Locked
from attune.pipeline.queues.model import Entry, Lane, QueueTerms, Turn
from attune.pipeline.queues.next_up import NextUp
from attune.pipeline.queues.rates import GATES
from attune.store.database import Tx

_ADMIT: Final = """
    UPDATE entry SET state = 'ready', reason = 'worker' WHERE execution = ANY(:ids::bigint[])
"""


class Promotion(Holding):
    """Gives slots. `promoted` are those that had waited and were given one meanwhile.

    `unwritten` are those of them whose rows do not say so yet: what is handed to a worker at once is written once.
    """

    def __init__(self, tx: Tx, held: Locked, terms: QueueTerms, now: datetime) -> None:
        super().__init__(tx, held, terms, now)
        self.promoted: set[ExecutionId] = set()
        self.unwritten: dict[ExecutionId, Entry] = {}
        self._next_up = NextUp(tx)

    async def promote(self, *, unwritten: bool = False) -> None:
        """Give every free slot to whoever is next: in each lane, and among lanes that share a pool.

        `unwritten`: the caller hands over at once, and leaves the rest to `save`.
        """
        await self._promote_alone()
        for policy in self._sharing():
            await self._promote_sharing(policy)
        for lane in list(self.held.lanes.values()):
            await self._settle(lane)
        if not unwritten:
            await self._write_admitted()

    async def look_ahead(self, leaving: Mapping[LaneId, int]) -> None:
        """Ask for those that follow when so many leave, along with the statements that make them leave.

        It is worth it for a single lane, which is where every round trip counts.
        """
        if len(leaving) == 1:
            [(lane_id, count)] = leaving.items()
            lane = self.held.lanes.get(lane_id)
            if lane is None or lane.queue_length:
                await self._next_up.look_ahead(lane_id, count)

    def handed_over(self, ids: Iterable[ExecutionId]) -> None:
        """Their rows were written as a worker's."""
        for one in ids:
            self.unwritten.pop(one, None)

    async def save(self) -> None:
        await self._write_admitted()
        await super().save()

    async def _write_admitted(self) -> None:
        if self.unwritten:
            await self.tx.later(_ADMIT, ids=sorted(self.unwritten))
            self.unwritten.clear()

    async def admit(self, lane_id: LaneId, count: int) -> list[ExecutionId]:
        """Admit up to so many whose turn it is, as far as the gates let them; those that were."""
        lane = self.held.lanes.get(lane_id)
        if lane is None:
            return []
        free = room(await self.gates(lane))
        given = await self._turns({lane_id: count if free is None else min(free, count)})
        await self._admit(given)
        await self._write_admitted()
        await self._settle(self.held.lanes[lane_id])
        return [turn.waiter.execution for turn in given.get(lane_id, [])]

    async def _promote_alone(self) -> None:
        """In lanes that share nothing: one look and one write for all of them."""
        counts: dict[LaneId, int] = {}
        for lane in self.held.lanes.values():
            if lane.pools is None and lane.queue_length and not self.is_deferred(lane):
                free = room(await self.gates(lane))
                counts[lane.id] = (
                    lane.queue_length if free is None else min(free, lane.queue_length)
                )
        await self._admit(await self._turns(counts))

    def _sharing(self) -> list[PolicyId]:
        """The policies under which lanes that are held share something, or did: a lane that left frees its share."""
        lanes = self.held.lanes.values()
        sharing = {lane.terms.policy for lane in lanes if lane.pools and lane.terms}
        return sorted(sharing | {self.held.pools[one].policy for one in self._changed_pools})

    async def _promote_sharing(self, policy: PolicyId) -> None:
        """Among the heads of all lanes that share a pool with those held: by band, then age, whoever finds every gate open."""
        pools = [one.id for one in self.held.pools.values() if one.policy == policy]
        waiting = await locking.waiting_under(self.tx, policy, pools)
        waiting = sorted({*waiting, *(one.id for one in self._waiting_here(policy))})
        if not waiting:
            return
        await locking.lock(self.tx, waiting, self.held)
        heads = await self._heads(self._up_to_date(policy, waiting))
        while heads:
            lane_id = min(heads, key=lambda each: self._due(each, heads[each]))
            turn, lane = heads.pop(lane_id), self.held.lanes[lane_id]
            if room(await self.gates(lane)) == 0:
                continue
            await self._admit({lane_id: [turn]})
            heads |= await self._heads([lane_id])

    def _up_to_date(self, policy: PolicyId, ids: Iterable[LaneId]) -> list[LaneId]:
        """Without lanes that still follow older words of the policy than others: they are arranged in a moment."""
        lanes = [e for e in self.held.lanes.values() if e.terms and e.terms.policy == policy]
        newest = max(lanes, key=lambda each: each.arranged)
        return [one for one in ids if self.held.lanes[one].stamp == newest.stamp]

    def _due(self, lane_id: LaneId, turn: Turn[Entry]) -> tuple[object, ...]:
        return (due(turn.waiter, self.held.lanes[lane_id].ageing), lane_id)

    def _waiting_here(self, policy: PolicyId) -> list[Lane]:
        lanes = self.held.lanes.values()
        return [e for e in lanes if e.terms and e.terms.policy == policy and e.queue_length]

    async def _heads(self, lane_ids: Iterable[LaneId]) -> dict[LaneId, Turn[Entry]]:
        """Whose turn it is in each of these lanes, where anyone waits and the lane's gates are open."""
        lanes = [self.held.lanes[lane_id] for lane_id in lane_ids]
        opened = {e.id: 1 for e in lanes if e.queue_length and room(await self.gates(e)) != 0}
        return {lane: given[0] for lane, given in (await self._turns(opened)).items()}

    async def _turns(self, counts: Mapping[LaneId, int]) -> dict[LaneId, list[Turn[Entry]]]:
        """Who goes next in each of these lanes, as many as are said."""
        wanted = {lane_id: count for lane_id, count in counts.items() if count > 0}
        if not wanted:
            return {}
        await self._write_admitted()
        waiting = await self._next_up.of(wanted)
        return {
            lane_id: turns(some, wanted[lane_id], self.held.lanes[lane_id].ageing)
            for lane_id, some in waiting.items()
        }

    async def _admit(self, given: Mapping[LaneId, Sequence[Turn[Entry]]]) -> None:
        for lane_id, some in given.items():
            self.unwritten |= {turn.waiter.execution: turn.waiter for turn in some}
            self.promoted.update(turn.waiter.execution for turn in some)
            await self._give(self.held.lanes[lane_id], some)

    async def _give(self, lane: Lane, given: Sequence[Turn[Entry]]) -> None:
        items = [
            Admitted(t.waiter.execution, t.waiter.sequence, t.waiter.band, t.passed_over, t.rule)
            for t in given
        ]
        self.change(promoted(lane, len(given)), *items)
        self.count(lane, active=len(given), admitted=True)
        if lane.rate is not None:
            pool = self.pools_of(lane)[WHOLE].id
            await self.rates.admit(pool, [turn.waiter.execution for turn in given])

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
            self.ledger.note(lane)
        if retry_at is not None:
            self.tx.wake(GATES)
