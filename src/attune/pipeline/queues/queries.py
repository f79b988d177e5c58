"""What the queues of an action look like now."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.pipeline.queues.overview import capacity
from attune.store.database import Tx

# The oldest that waits is found by one look into each band of each lane.
_STATS: Final = """
    SELECT queue_length, active_count, total_enqueued, total_completed, last_updated, oldest_enqueued_at
      FROM queue_stats WHERE action_ref = :ref
"""
# A limit that follows its action stands in the lane; before there is one it is the floor.
_LIMIT: Final = """
    SELECT coalesce((SELECT max(l.max_concurrent) FROM lane l WHERE l.action_ref = :ref),
                    p.concurrency_limit, p.concurrency_floor)
      FROM policy p
     WHERE p.enabled
       AND ((p.scope_type = 'action' AND p.scope_ref = :ref)
         OR (p.scope_type = 'pack' AND p.scope_ref = :pack_ref) OR p.scope_type = 'global')
     ORDER BY CASE p.scope_type WHEN 'action' THEN 0 WHEN 'pack' THEN 1 ELSE 2 END,
              p.priority DESC, p.id
     LIMIT 1
"""


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """`last_updated` is null for an action that was never run; `oldest_enqueued_at` where none waits for a slot."""

    queue_length: int = 0
    active_count: int = 0
    total_enqueued: int = 0
    total_completed: int = 0
    last_updated: datetime | None = None
    oldest_enqueued_at: datetime | None = None


async def queue_stats(tx: Tx, action_ref: str) -> QueueStats:
    return await tx.first(QueueStats, _STATS, ref=action_ref) or QueueStats()


async def concurrency_of(
    tx: Tx, action_ref: str, pack_ref: str, stale: timedelta, now: datetime
) -> int:
    """The limit of the one policy in effect; without one, as many as the workers that are there can run."""
    limit = await tx.first(int, _LIMIT, ref=action_ref, pack_ref=pack_ref)
    if limit is not None:
        return limit
    return await capacity(tx, stale, now)
