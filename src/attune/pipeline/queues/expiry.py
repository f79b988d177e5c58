"""Who has waited too long. The first of each band is the oldest, so nobody else needs to be looked at."""

from datetime import datetime
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId
from attune.pipeline.policies.model import GateName
from attune.store.database import Tx

# A later attempt has waited since it was due, not since the first one joined.
_QUEUED: Final = """
    SELECT e.execution, e.enqueued_at, l.action_ref, l.reason
      FROM lane l JOIN entry e ON e.execution = ANY(ARRAY(
           SELECT f.execution FROM entry f
            WHERE f.lane = l.id AND f.band = :band AND f.state = 'queued'
            ORDER BY f.sequence LIMIT :count))
     WHERE l.queue_length > 0 AND coalesce(e.due_at, e.enqueued_at) <= :before
     ORDER BY e.enqueued_at LIMIT :count
"""
_READY: Final = """
    SELECT e.execution, e.enqueued_at, l.action_ref, e.reason
      FROM entry e JOIN lane l ON l.id = e.lane
     WHERE e.state = 'ready' AND e.band = :band AND coalesce(e.due_at, e.enqueued_at) <= :before
     ORDER BY e.enqueued_at LIMIT :count
"""
_BANDS: Final = range(5)


class Overdue(msgspec.Struct, frozen=True):
    """`reason` is what it waited for."""

    execution: ExecutionId
    enqueued_at: datetime
    action_ref: str
    reason: GateName | None

    def text(self, seconds: float) -> str:
        return (
            f"The execution waited in the queue of {self.action_ref} for more than"
            f" queue_timeout_seconds ({seconds:g} s); it waited for {self.reason or 'its turn'}."
        )


async def overdue(tx: Tx, before: datetime, count: int) -> list[Overdue]:
    """Up to so many of each band that have waited since before then, for a slot or for a worker."""
    found: list[Overdue] = []
    for band in _BANDS:
        for sql in (_QUEUED, _READY):
            found += await tx.all(Overdue, sql, band=band, before=before, count=count)
    return found
