"""An execution, from the request to its history."""

from datetime import datetime
from enum import IntEnum
from typing import Any

import msgspec

from attune.catalog.retrying import Retries, Retry
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import (
    ActionDefinitionId,
    ActionId,
    EnforcementId,
    ExecutionId,
    IdentityId,
    WorkerId,
)
from attune.kernel.statuses import ExecutionStatus


class Priority(IntEnum):
    """The bands of a queue: the lower number goes first."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BACKGROUND = 4

    def __init__(self, _number: int) -> None:
        self.word = self._name_.lower()

    @classmethod
    def of(cls, word: str, field: str = "priority") -> "Priority":
        """From its word in any letter case."""
        found = cls.__members__.get(word.upper())
        if found is None:
            words = ", ".join(member.word for member in cls)
            raise InvalidInput(f"{field}: must be one of {words}", field=field)
        return found


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody, or a rule, wants run. `executor` is the identity in whose name it runs."""

    action_ref: str
    parameters: dict[str, Any] = {}
    env_vars: dict[str, str] | None = None
    executor: IdentityId | None = None
    parent: ExecutionId | None = None
    enforcement: EnforcementId | None = None
    rule_ref: str | None = None
    trigger_ref: str | None = None
    permission_set_refs: list[str] | None = None
    worker_selector: dict[str, Any] | None = None
    worker_tolerations: list[Any] | None = None
    worker_affinity: dict[str, Any] | None = None
    priority: Priority = Priority.NORMAL
    timeout_seconds: float | None = None
    max_retries: int | None = None
    retry: Retry | None = None
    idempotency_key: str | None = None
    trace_tag: str | None = None


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """The row. `attempt` is the fence: a write that carries an older one changes nothing.

    `config` are the parameters as they were resolved, secrets included: what is shown goes through `redact`.
    """

    id: ExecutionId
    action: ActionId | None
    action_ref: str
    definition: ActionDefinitionId
    status: ExecutionStatus
    failure: str | None = None
    attempt: int = 1
    priority: Priority = Priority.NORMAL
    parent: ExecutionId | None = None
    original_execution: ExecutionId | None = None
    enforcement: EnforcementId | None = None
    rule_ref: str | None = None
    trigger_ref: str | None = None
    executor: IdentityId | None = None
    worker: WorkerId | None = None
    started_at: datetime | None = None
    timeout_seconds: float | None = None
    idempotency_key: str | None = None
    trace_tag: str | None = None
    permission_set_refs: list[str] | None = None
    worker_selector: dict[str, Any] | None = None
    worker_tolerations: list[Any] | None = None
    worker_affinity: dict[str, Any] | None = None
    workflow_task: dict[str, Any] | None = None
    retry: Retries | None = None
    env_vars: dict[str, str] | None = None
    config: dict[str, Any] = {}
    result: dict[str, Any] | None = None
    created: datetime
    updated: datetime

    def __repr__(self) -> str:
        """Without parameters and variables: an execution may end up in a log or in a traceback."""
        return f"Execution(id={self.id}, action_ref={self.action_ref!r}, status={self.status})"


class ExecutionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows: nothing that can be large."""

    id: ExecutionId
    action_ref: str
    status: ExecutionStatus
    attempt: int
    priority: Priority
    parent: ExecutionId | None
    original_execution: ExecutionId | None
    enforcement: EnforcementId | None
    rule_ref: str | None
    trigger_ref: str | None
    executor: IdentityId | None
    worker: WorkerId | None
    started_at: datetime | None
    workflow_task: dict[str, Any] | None
    created: datetime
    updated: datetime
