"""How an attempt ended, and what becomes of work whose worker is gone."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from attune.catalog.placement import Needs
from attune.catalog.retrying import Cause, Retries
from attune.kernel.ids import ActionDefinitionId, ActionId, ExecutionId, LaneId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.scheduling.steps import OwnPass


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's word on one attempt. `result` is JSON, encoded once.

    `chatty` tells that output was kept for those who follow it, and can go.
    """

    execution: ExecutionId
    attempt: int
    lane: LaneId
    action: ActionId | None = None
    status: ExecutionStatus
    result: bytes
    started_at: datetime | None
    chatty: bool = False

    @property
    def key(self) -> tuple[ExecutionId, int]:
        return self.execution, self.attempt


@dataclass(frozen=True, slots=True)
class Completed:
    """`late` changed nothing, because another attempt counts; `handed` is what the worker got to do next.

    `incarnation` is the process of the worker that it is for: of two under one name, the later.
    """

    late: frozenset[ExecutionId]
    own: OwnPass

    @property
    def handed(self) -> list[HandOff]:
        return self.own.given.hand_offs()

    @property
    def incarnation(self) -> str:
        return self.own.incarnation


class Told(msgspec.Struct, frozen=True):
    """What a report that attempts run came to. `void` are those that count no more: another attempt does, or none."""

    moved: int
    void: frozenset[ExecutionId] = frozenset()


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
    retries: int = 0
    losses: int = 0
    needs: Needs | None = None
    retry: Retries | None = None
    started_at: datetime | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that did not come to a good end, and how the execution ends if there is no other."""

    execution: ExecutionId
    attempt: int
    status: ExecutionStatus
    cause: Cause
    error: str
    exit_code: int | None = None
    started_at: datetime | None = None


class PastAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The row of an attempt that was followed by another."""

    execution: ExecutionId
    attempt: int
    worker: WorkerId | None
    status: ExecutionStatus
    cause: Cause
    error: str | None
    started_at: datetime | None
    ended_at: datetime


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
