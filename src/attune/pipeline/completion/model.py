"""How an attempt ended, and what becomes of work whose worker is gone."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId, WorkerId
from attune.kernel.statuses import ExecutionStatus


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's word on one attempt. `result` is JSON, encoded once.

    `chatty` tells that output was kept for those who follow it, and can go.
    """

    execution: ExecutionId
    attempt: int
    lane: LaneId
    status: ExecutionStatus
    result: bytes
    started_at: datetime | None
    chatty: bool = False


class Completed(msgspec.Struct, frozen=True):
    """`late` changed nothing, because another attempt counts; `handed` is what the worker got to do next."""

    late: frozenset[ExecutionId]
    handed: tuple[ExecutionId, ...]


class Started(msgspec.Struct, frozen=True):
    execution: ExecutionId
    attempt: int
    started_at: datetime


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has in its hands, as rows tell it."""

    execution: ExecutionId
    lane: LaneId
    attempt: int
    status: ExecutionStatus
    worker: WorkerId
    definition: ActionDefinitionId


class Fate(StrEnum):
    """What becomes of an execution whose worker is lost."""

    AGAIN = "again"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"


class LostWorker(msgspec.Struct, frozen=True):
    id: WorkerId
    name: str
    cordoned: bool


def abandoned_result(worker: LostWorker, status: ExecutionStatus, reason: str) -> dict[str, Any]:
    return {
        "succeeded": False,
        "error": f"The worker {worker.name} {reason} while the execution was {status}.",
        "abandoned_by": reason,
        "original_status": status.value,
        "worker": {"id": worker.id, "name": worker.name, "cordoned": worker.cordoned},
    }
