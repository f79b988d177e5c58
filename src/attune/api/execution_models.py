"""Bodies and answers of /executions, under the names of the contract."""

from datetime import datetime
from typing import Annotated, Any, Final

import pydantic
from pydantic import AfterValidator, BeforeValidator, Field

from attune.api.fields import JsonObject, Ref
from attune.api.placement_models import WorkerAffinity, WorkerToleration
from attune.api.retry_parts import RetryPart
from attune.catalog.retry_rules import MOST_RETRIES
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority

MANY: Final = 10_000

_PRIORITIES: Final = [each.word for each in Priority]


def _priority(word: str) -> str:
    if word.lower() not in _PRIORITIES:
        raise ValueError(f"must be one of {', '.join(_PRIORITIES)}")
    return word.lower()


def _variable_names(variables: dict[str, str]) -> dict[str, str]:
    for name in variables:
        if not name or "=" in name:
            raise ValueError("a name must not be empty, nor hold '='")
    return variables


def _word(value: Any) -> Any:
    return value.word if isinstance(value, Priority) else value


Tag = Annotated[str, Field(min_length=1, max_length=255)]
PriorityWord = Annotated[
    str,
    AfterValidator(_priority),
    Field(examples=["normal"], json_schema_extra={"enum": _PRIORITIES}),
]


class ExecuteRequest(pydantic.BaseModel):
    action_ref: Ref
    parameters: JsonObject | None = None
    env_vars: Annotated[dict[str, str], AfterValidator(_variable_names)] | None = None
    permission_set_refs: list[str] | None = Field(
        default=None, description="What it may do with the API; null for the action's own."
    )
    worker_selector: dict[str, str] | None = None
    worker_tolerations: list[WorkerToleration] | None = None
    worker_affinity: WorkerAffinity | None = None
    priority: PriorityWord | None = None
    idempotency_key: Tag | None = Field(
        default=None, description="A second request with it is answered with the first's execution."
    )
    timeout_seconds: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Time in the queue does not count."
    )
    max_retries: int | None = Field(
        default=None, ge=0, le=MOST_RETRIES, description="Null for what the action says."
    )
    retry: RetryPart | None = Field(
        default=None, description="In place of all that the action says about it."
    )
    trace_tag: Tag | None = None


class ExecuteManyRequest(pydantic.BaseModel):
    executions: list[ExecuteRequest] = Field(max_length=MANY)


class ExecutionSummary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    action_ref: str
    status: ExecutionStatus
    attempt: int
    priority: Annotated[str, BeforeValidator(_word)]
    parent: int | None
    original_execution: int | None
    enforcement: int | None
    rule_ref: str | None
    trigger_ref: str | None
    executor: int | None
    worker: int | None
    started_at: datetime | None
    workflow_task: JsonObject | None
    created: datetime
    updated: datetime


# It describes what `execution_views.py` writes.
class ExecutionResponse(ExecutionSummary):
    """`reason` is what it waits for: concurrency, worker, …; null where it does not wait."""

    action: int | None
    config: JsonObject = Field(description="The parameters as resolved; secret ones redacted.")
    result: JsonObject | None = Field(description="Null until it has ended.")
    permission_set_refs: list[str]
    worker_selector: JsonObject | None
    worker_tolerations: list[Any] | None
    worker_affinity: JsonObject | None
    timeout_seconds: float | None
    max_retries: int
    retry: RetryPart | None = Field(description="As resolved; null where a failure is the end.")
    trace_tag: str | None
    reason: str | None = None


class ExecutionStats(pydantic.BaseModel):
    """`running` has been started by a worker, `pending` has not; together with the others they are the total."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    total: int
    completed: int
    failed: int
    running: int
    pending: int
    cancelled: int
    timeout: int
    abandoned: int
