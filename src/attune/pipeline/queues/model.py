"""A lane and what stands in it."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId, WorkerId
from attune.pipeline.executions.model import Priority


class State(StrEnum):
    """`ready` and `handed` hold a slot of the lane; `handed` also one of its worker."""

    QUEUED = "queued"
    READY = "ready"
    HANDED = "handed"


class Reason(StrEnum):
    """What an entry waits for."""

    CONCURRENCY = "concurrency"
    PAUSE = "pause"
    WORKER = "worker"


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """The row, locked. `max_concurrent` is the limit of the policy in effect, null for none."""

    id: LaneId
    action_ref: str
    group_key: str = ""
    paused: bool = False
    next_sequence: int = 1
    queue_length: int = 0
    active_count: int = 0
    total_enqueued: int = 0
    total_completed: int = 0
    last_enqueued_at: datetime
    max_concurrent: int | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The row. Its order in the lane is band, then sequence; among lanes it is band, then age."""

    execution: ExecutionId
    lane: LaneId
    band: Priority
    sequence: int
    state: State
    reason: Reason | None
    enqueued_at: datetime
    attempt: int
    definition: ActionDefinitionId
    worker_selector: dict[str, Any] | None = None
    worker: WorkerId | None = None
    lease_expires_at: datetime | None = None
