"""What became of a worker, and what it did to executions: one row for each thing worth telling."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, WorkerId
from attune.store import schema
from attune.store.database import Tx

# Wakes whoever turns what happened here into alerts.
ALERTS: Final = "alerts"


class WorkerEvent(StrEnum):
    REGISTERED = "registered"
    STOPPED = "stopped"
    LOST = "lost"
    BACK = "back"
    UNRESPONSIVE = "unresponsive"
    RESPONSIVE = "responsive"
    CORDONED = "cordoned"
    UNCORDONED = "uncordoned"
    SET_ASIDE = "set_aside"
    TAKEN_UP = "taken_up"
    # An execution that it was handed and did not begin, did not end, or lost.
    NOT_STARTED = "not_started"
    OVERDUE = "overdue"
    ABANDONED = "abandoned"


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """`downtime_seconds` is how long nothing was heard of it."""

    worker: WorkerId
    event: WorkerEvent
    at: datetime
    execution: ExecutionId | None = None
    downtime_seconds: float | None = None
    text: str | None = None


class _Row(Happened, frozen=True, kw_only=True):
    id: int


async def note(tx: Tx, happened: Sequence[Happened]) -> None:
    if happened:
        ids = await tx.next_ids(schema.worker_history, len(happened))
        rows = [
            _Row(id=new, **msgspec.structs.asdict(one))
            for new, one in zip(ids, happened, strict=True)
        ]
        await tx.insert(schema.worker_history, rows)
