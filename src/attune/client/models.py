"""What happens: executions, events and enforcements, under the names of the API.

Fields that this version does not know are ignored, here and in `definitions` and `accounts`.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from attune.kernel.ids import (
    ActionId,
    EnforcementId,
    EventId,
    ExecutionId,
    IdentityId,
    RuleId,
    TriggerId,
    WorkerId,
)
from attune.kernel.statuses import TERMINAL, ExecutionStatus

T = TypeVar("T")


class Pagination(msgspec.Struct, frozen=True, kw_only=True):
    """`page` counts from 1. The totals are null where the server was not asked to count."""

    page: int
    page_size: int
    has_next: bool
    has_previous: bool
    total_items: int | None = None
    total_pages: int | None = None


class Page(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]
    pagination: Pagination

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered when there is nothing to show."""

    success: bool = True
    message: str = ""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    created: datetime
    updated: datetime | None = None


class ExecutionSummary(Stored, frozen=True, kw_only=True):
    id: ExecutionId
    action_ref: str
    status: ExecutionStatus
    enforcement: EnforcementId | None = None
    parent: ExecutionId | None = None
    original_execution: ExecutionId | None = None
    rule_ref: str | None = None
    trigger_ref: str | None = None
    started_at: datetime | None = None
    workflow_task: dict[str, Any] | None = None
    attempt: int | None = None
    priority: str | None = None

    @property
    def is_finished(self) -> bool:
        return self.status in TERMINAL

    @property
    def succeeded(self) -> bool:
        return self.status is ExecutionStatus.COMPLETED


class Execution(ExecutionSummary, frozen=True, kw_only=True):
    """`result` is null until it has ended; `config` is its parameters, secret ones left out.

    `reason` is what it waits for: concurrency, a worker, …; null where it does not wait. `retry` is how it is tried
    again, `max_retries` times at most.
    """

    action: ActionId | None = None
    config: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    executor: IdentityId | None = None
    worker: WorkerId | None = None
    permission_set_refs: list[str] | None = None
    worker_selector: Any = None
    worker_affinity: Any = None
    worker_tolerations: Any = None
    timeout_seconds: float | None = None
    max_retries: int | None = None
    retry: dict[str, Any] | None = None
    reason: str | None = None
    trace_tag: str | None = None

    @property
    def data(self) -> Any:
        """The action's structured output; None where it gave none."""
        return (self.result or {}).get("data")

    @property
    def error(self) -> str | None:
        """Why it did not complete, in a sentence or the end of its standard error."""
        return (self.result or {}).get("error")

    def output(self, stream: str) -> str:
        """What a finished one wrote to `stdout` or `stderr`."""
        return (self.result or {}).get(stream) or ""


class ConsideredRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that an event was held against, and why it did or did not match."""

    rule_ref: str
    matched: bool
    reason: str | None = None


class EventSummary(Stored, frozen=True, kw_only=True):
    id: EventId
    trigger_ref: str
    trigger: TriggerId | None = None
    rule: RuleId | None = None
    rule_ref: str | None = None
    source: int | None = None
    source_ref: str | None = None
    has_payload: bool | None = None


class Event(EventSummary, frozen=True, kw_only=True):
    payload: Any = None
    config: Any = None
    rules: list[ConsideredRule] | None = None


class EnforcementStatus(StrEnum):
    CREATED = "created"
    PROCESSED = "processed"
    DISABLED = "disabled"


class EnforcementSummary(Stored, frozen=True, kw_only=True):
    id: EnforcementId
    rule_ref: str
    trigger_ref: str
    status: EnforcementStatus
    condition: str
    event: EventId | None = None
    rule: RuleId | None = None


class Enforcement(EnforcementSummary, frozen=True, kw_only=True):
    """`warnings` name what a template asked for and the event did not have."""

    conditions: Any = None
    config: Any = None
    payload: Any = None
    reason: str | None = None
    warnings: list[Any] | None = None
    resolved_at: datetime | None = None
