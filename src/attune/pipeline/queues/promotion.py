"""Who is next: in a lane, and among the lanes that share something."""

from collections.abc import Sequence
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
from attune.pipeline.queues.model import (
    Lane,
    QueueTerms,
    Turn,
    Waiter,
)
from attune.pipeline.queues.rates import GATES
from attune.store.database import Tx

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
_ALL: Final = 2**31 - 1


class Promotion(Holding):
    """Gives slots. `promoted` are those that had waited and were given one meanwhile."""

    def __init__(self, tx: Tx, held: Locked, terms: QueueTerms, now: datetime) -> None:
        super().__init__(tx, held, terms, now)
        self.promoted: set[ExecutionId] = set()

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
            await self.rates.admit(self.pools_of(lane)[WHOLE].id, ids)
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
            self.ledger.note(lane)
        if retry_at is not None:
            self.tx.wake(GATES)
