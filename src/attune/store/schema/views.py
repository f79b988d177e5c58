"""What others read: views that are true at every commit, because they are the rows themselves."""

from typing import Final

import sqlalchemy as sa

from attune.store.schema.base import metadata

# One row for each action that was ever run. The oldest is found by one look into each band of each waiting lane.
QUEUE_STATS: Final = """
CREATE VIEW queue_stats AS
SELECT a.id AS action_id,
       a.ref AS action_ref,
       CAST(sum(l.queue_length) AS bigint) AS queue_length,
       CAST(sum(l.active_count) AS bigint) AS active_count,
       coalesce(max(l.max_concurrent),
                (SELECT CAST(coalesce(sum(w.capacity), 0) AS integer) FROM worker w
                  WHERE w.status = 'active' AND NOT w.cordoned)) AS max_concurrent,
       (SELECT min((SELECT e.enqueued_at FROM entry e
                     WHERE e.lane = o.id AND e.band = b.band AND e.state = 'queued'
                     ORDER BY e.sequence LIMIT 1))
          FROM lane o
         CROSS JOIN (SELECT 0 AS band UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                     UNION ALL SELECT 4) b
         WHERE o.action_ref = a.ref AND o.queue_length > 0) AS oldest_enqueued_at,
       CAST(sum(l.total_enqueued) AS bigint) AS total_enqueued,
       CAST(sum(l.total_completed) AS bigint) AS total_completed,
       max(l.updated) AS last_updated
  FROM action a JOIN lane l ON l.action_ref = a.ref
 GROUP BY a.id, a.ref
"""

VIEWS: Final = (QUEUE_STATS,)

for _view in VIEWS:
    sa.event.listen(metadata, "after_create", sa.DDL(_view))  # type: ignore[no-untyped-call]
