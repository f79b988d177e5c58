"""What one worker has to do now, and what became of it: more than a list of workers shows."""

from datetime import datetime
from typing import Final

import msgspec

from attune.identities.row_conditions import Condition
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.listing import Listed, Window, all_of, equals, newest, total
from attune.pipeline.workers.history import WorkerEvent
from attune.store.database import Tx

_HANDED: Final = "FROM entry e JOIN execution x ON x.id = e.execution"


class HeldExecution(msgspec.Struct, frozen=True, kw_only=True):
    """`since` is when it got its status: its start, where it runs. Not begun by the lease's end, it is taken away."""

    id: ExecutionId
    action_ref: str
    status: ExecutionStatus
    attempt: int
    since: datetime
    started_at: datetime | None
    lease_expires_at: datetime | None


class HistoryRow(msgspec.Struct, frozen=True, kw_only=True):
    """`downtime_seconds` is how long nothing was heard of it."""

    id: int
    event: WorkerEvent
    at: datetime
    execution: ExecutionId | None
    downtime_seconds: float | None
    text: str | None


class HeldPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[HeldExecution]
    total: int


_HISTORY: Final = Listed("worker_history", HistoryRow, ", ".join(HistoryRow.__struct_fields__))


async def held_executions(
    tx: Tx, worker: WorkerId, readable: Condition, limit: int, offset: int
) -> HeldPage:
    """What it was handed and has not ended, oldest first; `readable` is a condition over executions."""
    own = Condition("e.state = 'handed' AND e.worker = :worker", {"worker": worker})
    where = all_of([own, readable])
    found = await tx.all(
        HeldExecution,
        f"""
        SELECT x.id, x.action_ref, x.status, e.attempt, x.started_at, e.lease_expires_at,
               CASE WHEN x.status = 'running' THEN coalesce(x.started_at, x.updated)
                    ELSE x.updated END AS since
          {_HANDED} WHERE {where.sql}
         ORDER BY x.id LIMIT :rows_at_most OFFSET :rows_skipped
        """,
        rows_at_most=limit,
        rows_skipped=offset,
        **where.values,
    )
    counted = f"SELECT count(*) {_HANDED} WHERE {where.sql}"
    return HeldPage(items=found, total=await tx.one(int, counted, **where.values))


async def history_of(tx: Tx, worker: WorkerId, window: Window) -> list[HistoryRow]:
    """Newest first."""
    return await newest(tx, _HISTORY, equals("worker", "worker", worker), window)


async def count_history(tx: Tx, worker: WorkerId) -> int:
    return await total(tx, _HISTORY, equals("worker", "worker", worker))
