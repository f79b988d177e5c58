"""What the queues of an action look like now."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.store.database import Tx

# The oldest that waits is found by one look into each band of each lane.
_STATS: Final = """
    SELECT coalesce(sum(l.queue_length), 0)::bigint AS queue_length,
           coalesce(sum(l.active_count), 0)::bigint AS active_count,
           coalesce(sum(l.total_enqueued), 0)::bigint AS total_enqueued,
           coalesce(sum(l.total_completed), 0)::bigint AS total_completed,
           max(l.updated) AS last_updated,
           (SELECT min((SELECT e.enqueued_at FROM entry e
                         WHERE e.lane = w.id AND e.band = b.band AND e.state = 'queued'
                         ORDER BY e.sequence LIMIT 1))
              FROM lane w
             CROSS JOIN (SELECT 0 AS band UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                         UNION ALL SELECT 4) b
             WHERE w.action_ref = :ref AND w.queue_length > 0) AS oldest_enqueued_at
      FROM lane l WHERE l.action_ref = :ref
"""
_LIMIT: Final = """
    SELECT p.concurrency_limit FROM policy p
     WHERE p.enabled
       AND ((p.scope_type = 'action' AND p.scope_ref = :ref)
         OR (p.scope_type = 'pack' AND p.scope_ref = :pack_ref) OR p.scope_type = 'global')
     ORDER BY CASE p.scope_type WHEN 'action' THEN 0 WHEN 'pack' THEN 1 ELSE 2 END,
              p.priority DESC, p.id
     LIMIT 1
"""
_CAPACITY: Final = """
    SELECT coalesce(sum(capacity), 0)::bigint FROM worker
     WHERE status = 'active' AND NOT cordoned AND last_heartbeat > :since
"""


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """`last_updated` is null for an action that was never run; `oldest_enqueued_at` where none waits for a slot."""

    queue_length: int
    active_count: int
    total_enqueued: int
    total_completed: int
    last_updated: datetime | None
    oldest_enqueued_at: datetime | None


async def queue_stats(tx: Tx, action_ref: str) -> QueueStats:
    return await tx.one(QueueStats, _STATS, ref=action_ref)


async def concurrency_of(
    tx: Tx, action_ref: str, pack_ref: str, stale: timedelta, now: datetime
) -> int:
    """The limit of the one policy in effect; without one, as many as the workers that are there can run."""
    limit = await tx.first(int, _LIMIT, ref=action_ref, pack_ref=pack_ref)
    if limit is not None:
        return limit
    return await tx.one(int, _CAPACITY, since=now - stale)
