"""The port of the queue service: who waits, who has a slot, and who is next.

A queue is either a lane (`lane` given) or the whole system (`lane` None). An execution that is enqueued for a lane
waits there, then holds a slot of the lane and waits in the system, then holds a slot of the system too: queued, ready,
handed. One that is enqueued without a lane knows the system only. Within a lane the order is priority, then sequence;
in the system it is priority, then age, then sequence.

Limits are arguments, not state: nothing here knows policies. The database is the truth and the fence, so an adapter
that is wrong delays work and breaks nothing.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from attune.kernel.errors import InvalidInput
from attune.kernel.ids import ActionId, EnforcementId, ExecutionId, LaneId
from attune.kernel.messages import ExecutionRequested
from attune.pipeline.executions.model import Priority


class QueueItem(msgspec.Struct, frozen=True, kw_only=True):
    """One that is to wait. `sequence` is the lane's, given by the database under its lock, and is never used twice there.

    `payload` is the JSON of its execution.requested message.
    """

    execution: ExecutionId
    lane: LaneId | None = None
    priority: Priority = Priority.NORMAL
    sequence: int
    enqueued_at: datetime
    payload: bytes


class QueueStatus(msgspec.Struct, frozen=True):
    """How many wait, and how many hold a slot."""

    queue_depth: int
    active_count: int


class ExecutionQueue(Protocol):
    """What a call does to one execution is atomic. After `QueueUnavailable` it may have been done or not."""

    async def enqueue(self, item: QueueItem) -> int:
        """Its position, from 1. One that stands there already stays as it is; 0 if it waits no more."""

    async def enqueue_many(self, items: Sequence[QueueItem]) -> int:
        """How many of them were not there before."""

    async def try_schedule(
        self, max_active: int | None, lane: LaneId | None = None
    ) -> QueueItem | None:
        """Give a slot to the first that waits, if fewer than `max_active` have one; None for no limit."""

    async def try_schedule_many(
        self, lane: LaneId | None, max_active: int | None, count: int
    ) -> list[QueueItem]:
        """The same for up to `count`, in their order."""

    async def release(self, execution: ExecutionId) -> bool:
        """It ended: free whatever it held. False, and nothing freed, if it holds no slot."""

    async def release_many(self, executions: Collection[ExecutionId]) -> set[ExecutionId]:
        """Those that held one."""

    async def put_back(self, execution: ExecutionId) -> bool:
        """Undo the last slot that it was given: it waits again where it stood. False if it holds none."""

    async def update_priority(self, execution: ExecutionId, priority: Priority) -> bool:
        """It keeps its sequence and its age. False if it does not wait."""

    async def remove(self, execution: ExecutionId) -> bool:
        """Whether it was there, waiting or with a slot."""

    async def get_queue_status(self, lane: LaneId | None = None) -> QueueStatus: ...

    async def get_pending_by_priority(self, lane: LaneId | None = None) -> dict[Priority, int]:
        """Every priority, also those in which nobody waits."""

    async def position(self, execution: ExecutionId) -> int | None:
        """From 1, in the queue where it waits now; None if it does not wait."""


def requested_payload(
    execution: ExecutionId,
    action: ActionId | None = None,
    action_ref: str | None = None,
    enforcement: EnforcementId | None = None,
) -> bytes:
    """The message by which an execution is asked for, as a queue keeps it."""
    return msgspec.json.encode(
        ExecutionRequested(
            execution_id=execution,
            action_id=action,
            action_ref=action_ref,
            enforcement_id=enforcement,
        )
    )


def check_limit(max_active: int | None, count: int = 1) -> None:
    """Both count slots, so neither can be below 0."""
    for field, value in (("max_active", max_active), ("count", count)):
        if value is not None and value < 0:
            raise InvalidInput(f"{field}: must be 0 or more", field=field)
