"""The lanes and pools that a transaction holds, and what it changes in them: written once, with the log."""

from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import LaneId, PoolId
from attune.pipeline.policies.decide import WHOLE
from attune.pipeline.policies.model import Gate
from attune.pipeline.queues.decide import gates
from attune.pipeline.queues.decisions import Item
from attune.pipeline.queues.ledger import Ledger
from attune.pipeline.queues.locking import Locked
from attune.pipeline.queues.model import (
    Lane,
    Pool,
    QueueTerms,
)
from attune.pipeline.queues.rates import Rates
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


class Holding:
    """What changes is kept here until `save`."""

    def __init__(self, tx: Tx, held: Locked, terms: QueueTerms, now: datetime) -> None:
        self.tx = tx
        self.now = now
        self.held = held
        self.terms = terms
        self.ledger = Ledger()
        self.rates = Rates(tx, now)
        self._changed: set[LaneId] = set()
        self._changed_pools: set[PoolId] = set()

    async def gates(self, lane: Lane) -> list[Gate]:
        pools = self.pools_of(lane)
        if lane.rate is not None:
            await self.rates.load(pools[WHOLE].id, lane.rate)
        return gates(lane, pools, self.rates.known, self.now)

    def pools_of(self, lane: Lane) -> dict[str, Pool]:
        return {self.held.pools[one].key: self.held.pools[one] for one in lane.pools or ()}

    def is_deferred(self, lane: Lane) -> bool:
        """Whether a queue outside the database proposes who is next in it: it knows bands and limits, and no more."""
        plain = lane.pools is None and lane.ageing is None and not lane.cancels
        return self.terms.deferred and plain

    def change(self, lane: Lane, *items: Item) -> None:
        """The lane as it is from now on, with what is to be noted of the change."""
        if items:
            self.ledger.note(self.held.lanes[lane.id], *items)
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
            await self.tx.later(_SAVE, lanes=lanes, now=self.now)
        if self._changed_pools:
            pools = [self.held.pools[pool_id] for pool_id in sorted(self._changed_pools)]
            rows = [
                (pool.id, pool.active_count, pool.total_accepted, pool.next_decision)
                for pool in pools
            ]
            await self.tx.later(_SAVE_POOLS, pools=rows, now=self.now)
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
