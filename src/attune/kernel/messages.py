"""Every message type, and what each carries.

A message hurries its reader to a row; the row has the truth. So a payload names rows and repeats only
what saves the reader a look. Optional fields are those that a foreign publisher may leave out.
"""

from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

import msgspec

from attune.kernel.ids import (
    ActionId,
    EnforcementId,
    EventId,
    ExecutionId,
    InquiryId,
    PackId,
    RuleId,
    TriggerId,
    WorkerId,
)
from attune.kernel.statuses import ExecutionStatus


class MessageType(StrEnum):
    EVENT_CREATED = "event.created"
    ENFORCEMENT_CREATED = "enforcement.created"
    EXECUTION_REQUESTED = "execution.requested"
    EXECUTION_SCHEDULED = "execution.scheduled"
    EXECUTION_CANCEL = "execution.cancel"
    EXECUTION_STATUS_CHANGED = "execution.status.changed"
    EXECUTION_NEWS = "execution.news"
    EXECUTION_COMPLETED = "execution.completed"
    INQUIRY_CREATED = "inquiry.created"
    INQUIRY_RESPONDED = "inquiry.responded"
    RULE_CREATED = "rule.created"
    RULE_UPDATED = "rule.updated"
    RULE_ENABLED = "rule.enabled"
    RULE_DISABLED = "rule.disabled"
    RULE_DELETED = "rule.deleted"
    PACK_REGISTERED = "pack.registered"
    PACK_UPDATED = "pack.updated"
    PACK_DELETED = "pack.deleted"
    WORKER_REGISTERED = "worker.registered"
    WORKER_STOPPED = "worker.stopped"
    WORKER_PROBE = "worker.probe"
    WORKER_PROBED = "worker.probed"


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what one item of a message says. Unknown fields are ignored, so that newer peers can talk."""


class EventCreated(Payload, frozen=True):
    event_id: EventId
    trigger_id: TriggerId | None = None
    trigger_ref: str | None = None


class EnforcementCreated(Payload, frozen=True):
    enforcement_id: EnforcementId
    rule_id: RuleId | None = None
    event_id: EventId | None = None


class ExecutionRequested(Payload, frozen=True):
    """`is_handed`: to a worker, in the commit that made it. Then the worker tells that there is such an execution."""

    execution_id: ExecutionId
    action_id: ActionId | None = None
    action_ref: str | None = None
    enforcement_id: EnforcementId | None = None
    is_handed: bool = False


class ExecutionScheduled(Payload, frozen=True):
    """The hand-off: from its publication on, the worker owns the execution for as long as its lease lasts.

    That it was handed over is the worker's to tell; `is_new`: that it was made as well, because both were one commit.
    """

    execution_id: ExecutionId
    worker_id: WorkerId
    attempt: int
    action_ref: str | None = None
    lease_expires_at: datetime | None = None
    is_new: bool = False


class ExecutionCancel(Payload, frozen=True):
    execution_id: ExecutionId
    attempt: int | None = None


class ExecutionStatusChanged(Payload, frozen=True):
    """Where it has `updated`, it tells all that has changed: `started_at` is as the row has it, too."""

    execution_id: ExecutionId
    status: ExecutionStatus
    old_status: ExecutionStatus | None = None
    action_ref: str | None = None
    attempt: int | None = None
    started_at: datetime | None = None
    updated: datetime | None = None


class ExecutionCompleted(Payload, frozen=True):
    execution_id: ExecutionId
    action_id: ActionId
    action_ref: str
    status: ExecutionStatus
    completed_at: datetime
    attempt: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")


class InquiryChanged(Payload, frozen=True):
    inquiry_id: InquiryId
    execution_id: ExecutionId | None = None


class RuleChanged(Payload, frozen=True):
    rule_id: RuleId
    rule_ref: str | None = None


class PackChanged(Payload, frozen=True):
    pack_id: PackId
    pack_ref: str | None = None


class WorkerChanged(Payload, frozen=True):
    worker_id: WorkerId
    worker_name: str | None = None


class WorkerProbe(Payload, frozen=True):
    """A question to one worker, and, sent back with the same `probe_id`, its answer."""

    worker_id: WorkerId
    probe_id: UUID


PAYLOADS: MappingProxyType[MessageType, type[Payload]] = MappingProxyType(
    {
        MessageType.EVENT_CREATED: EventCreated,
        MessageType.ENFORCEMENT_CREATED: EnforcementCreated,
        MessageType.EXECUTION_REQUESTED: ExecutionRequested,
        MessageType.EXECUTION_SCHEDULED: ExecutionScheduled,
        MessageType.EXECUTION_CANCEL: ExecutionCancel,
        MessageType.EXECUTION_STATUS_CHANGED: ExecutionStatusChanged,
        MessageType.EXECUTION_NEWS: ExecutionStatusChanged,
        MessageType.EXECUTION_COMPLETED: ExecutionCompleted,
        MessageType.INQUIRY_CREATED: InquiryChanged,
        MessageType.INQUIRY_RESPONDED: InquiryChanged,
        MessageType.RULE_CREATED: RuleChanged,
        MessageType.RULE_UPDATED: RuleChanged,
        MessageType.RULE_ENABLED: RuleChanged,
        MessageType.RULE_DISABLED: RuleChanged,
        MessageType.RULE_DELETED: RuleChanged,
        MessageType.PACK_REGISTERED: PackChanged,
        MessageType.PACK_UPDATED: PackChanged,
        MessageType.PACK_DELETED: PackChanged,
        MessageType.WORKER_REGISTERED: WorkerChanged,
        MessageType.WORKER_STOPPED: WorkerChanged,
        MessageType.WORKER_PROBE: WorkerProbe,
        MessageType.WORKER_PROBED: WorkerProbe,
    }
)
