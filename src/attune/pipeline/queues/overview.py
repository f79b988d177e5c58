"""The queues as a whole: how much waits and runs in each, and in all of them together.

Counts come from the counters of the lanes, which are true at every commit. Rows are counted only where there are few:
those that workers have, and those that wait outside the band NORMAL.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.identities.row_conditions import Condition
from attune.kernel.ids import LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.store.database import Tx

_TOTALS: Final = """
    SELECT coalesce(sum(queue_length + active_count), 0)::bigint AS held,
           (SELECT count(*) FROM entry WHERE state = 'handed') AS handed
      FROM lane
"""
# The bands stand in the text: for one that it does not know, PostgreSQL expects the most common and reads them all.
_SPECIAL_BANDS: Final = " UNION ALL ".join(
    f"""
    SELECT {band:d} AS band,
           ((SELECT count(*) FROM entry e WHERE e.state = 'ready' AND e.band = {band:d})
            + coalesce((SELECT sum((SELECT count(*) FROM entry e
                                     WHERE e.lane = l.id AND e.band = {band:d} AND e.state = 'queued'))
                          FROM lane l WHERE l.queue_length > 0), 0))::bigint AS count"""  # noqa: S608
    for band in Priority
    if band is not Priority.NORMAL
)
_CAPACITY: Final = """
    SELECT coalesce(sum(capacity), 0)::bigint FROM worker
     WHERE status = 'active' AND NOT cordoned AND last_heartbeat > :since
"""
# The oldest that waits is found by one look into each band.
_QUEUES: Final = """
    SELECT x.id, x.action_ref, x.group_key, x.queue_length, x.active_count,
           x.active_count - coalesce(h.count, 0) AS ready_count, x.max_concurrent, x.paused,
           CASE WHEN x.paused THEN 'pause' ELSE x.reason END AS reason, x.retry_at,
           p.ref AS policy_ref, x.total_enqueued, x.total_completed, x.updated,
           (SELECT min((SELECT e.enqueued_at FROM entry e
                         WHERE e.lane = x.id AND e.band = b.band AND e.state = 'queued'
                         ORDER BY e.sequence LIMIT 1))
              FROM (SELECT 0 AS band UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                    UNION ALL SELECT 4) b
             WHERE x.queue_length > 0) AS oldest_enqueued_at
      FROM lane x
      LEFT JOIN (SELECT lane, count(*) AS count FROM entry WHERE state = 'handed' GROUP BY lane) h
        ON h.lane = x.id
      LEFT JOIN policy p ON p.id = x.policy
"""


class SystemQueue(msgspec.Struct, frozen=True, kw_only=True):
    """`queue_depth` is what waits, for a slot or for a worker; `active_count` is what workers have."""

    queue_depth: int
    active_count: int
    by_priority: dict[Priority, int]


class QueueOverview(msgspec.Struct, frozen=True, kw_only=True):
    """One lane. `active_count` have a slot, of whom `ready_count` wait for a worker.

    `reason` is what its head waits for, `retry_at` when that gate opens by itself, `max_concurrent` null for no limit.
    """

    id: LaneId
    action_ref: str
    group_key: str
    queue_length: int
    active_count: int
    ready_count: int
    max_concurrent: int | None
    paused: bool
    reason: GateName | None
    retry_at: datetime | None
    policy_ref: str | None
    total_enqueued: int
    total_completed: int
    updated: datetime
    oldest_enqueued_at: datetime | None


class _Totals(msgspec.Struct, frozen=True):
    held: int
    handed: int


class _Band(msgspec.Struct, frozen=True):
    band: Priority
    count: int


async def system_queue(tx: Tx) -> SystemQueue:
    totals = await tx.one(_Totals, _TOTALS)
    counts = {each.band: each.count for each in await tx.all(_Band, _SPECIAL_BANDS)}
    depth = totals.held - totals.handed
    counts[Priority.NORMAL] = depth - sum(counts.values())
    return SystemQueue(
        queue_depth=depth,
        active_count=totals.handed,
        by_priority={band: counts[band] for band in Priority},
    )


async def capacity(tx: Tx, stale: timedelta, now: datetime) -> int:
    """What the active workers can take together; one that was silent for `stale` is not active."""
    return await tx.one(int, _CAPACITY, since=now - stale)


async def list_queues(tx: Tx, where: Condition, limit: int, offset: int) -> list[QueueOverview]:
    """By action and group. The condition knows the lane as `x`."""
    sql = f"{_QUEUES} WHERE {where.sql} ORDER BY x.action_ref, x.group_key LIMIT :most OFFSET :skipped"
    return await tx.all(QueueOverview, sql, most=limit, skipped=offset, **where.values)


async def count_queues(tx: Tx, where: Condition) -> int:
    sql = f"SELECT count(*) FROM lane x WHERE {where.sql}"  # noqa: S608 - a condition of our own text
    return await tx.one(int, sql, **where.values)
