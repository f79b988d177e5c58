"""Bodies and answers of /actions, under the names of the contract."""

from datetime import datetime
from typing import Any, Final

import pydantic
from pydantic import Field

from attune.api.fields import Filled, Id, JsonObject, Ref, Schema, TextPatch, changed
from attune.api.placement_models import WorkerAffinity, WorkerToleration
from attune.api.retry_parts import LimitsPart, RetryPart, ShownLimits, ShownRetry

_PLACEMENT = "Answered as it was written."
_CONSTRAINTS = [">=3.11,<4", "^20", "*"]
_CLEARABLE: Final = ("timeout_seconds", "retry", "limits", "reuse")


class ActionSummary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    ref: str
    pack_ref: str
    label: str
    description: str | None
    enabled: bool
    entrypoint: str
    runtime: int | None
    runtime_ref: str | None
    runtime_version_constraint: str | None
    required_worker_runtimes: JsonObject
    worker_selector: JsonObject
    worker_tolerations: list[JsonObject] = Field(description=_PLACEMENT)
    worker_affinity: JsonObject = Field(description=_PLACEMENT)
    default_execution_permission_set_refs: list[str]
    accesses_mcp: bool
    workflow_def: int | None
    tags: list[str]
    created: datetime
    updated: datetime


class ActionResponse(ActionSummary):
    pack: int
    is_adhoc: bool
    param_schema: JsonObject | None
    out_schema: JsonObject | None
    parameter_delivery: str
    parameter_format: str
    output_format: str
    timeout_seconds: int | None
    max_retries: int
    on_worker_lost: str
    retry: ShownRetry
    limits: ShownLimits
    reuse: bool


class ActionSearchHit(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    ref: str
    pack_ref: str
    label: str
    description: str | None
    runtime_ref: str | None
    accesses_mcp: bool
    is_workflow: bool


class _ActionFields(pydantic.BaseModel):
    """What may be said of an action when it is made and when it is changed."""

    runtime: Id | None = None
    runtime_ref: Ref | None = None
    required_worker_runtimes: dict[str, str] | None = Field(
        default=None, examples=[{"python": ">=3.11"}]
    )
    param_schema: Schema | None = None
    out_schema: Schema | None = None
    parameter_delivery: str | None = Field(default=None, examples=["stdin", "file"])
    parameter_format: str | None = Field(default=None, examples=["json", "dotenv", "yaml"])
    output_format: str | None = Field(default=None, examples=["text", "json", "yaml", "jsonl"])
    timeout_seconds: int | None = Field(default=None, description="Above 0; null for none.")
    max_retries: int | None = Field(
        default=None, examples=[3], description="How many attempts may follow the first."
    )
    on_worker_lost: str | None = Field(default=None, examples=["retry", "fail"])
    retry: RetryPart | None = Field(
        default=None, description="When the next attempt comes, and after which errors."
    )
    limits: LimitsPart | None = Field(default=None, description="What a run of it may use.")
    reuse: bool | None = Field(
        default=None, description="Whether executions may share a process, one after the other."
    )
    worker_selector: dict[str, str] | None = None
    worker_tolerations: list[WorkerToleration] | None = None
    worker_affinity: WorkerAffinity | None = None
    default_execution_permission_set_refs: list[str] | None = None
    accesses_mcp: bool | None = None
    description: str | None = None
    tags: list[str] | None = None


class CreateActionRequest(_ActionFields):
    ref: Ref
    pack_ref: Ref
    label: Filled
    entrypoint: str
    runtime_version_constraint: str | None = Field(default=None, examples=_CONSTRAINTS)


class UpdateActionRequest(_ActionFields):
    """What is absent stays as it is. A null takes `timeout_seconds`, `retry`, `limits` or `reuse` away."""

    label: Filled | None = None
    entrypoint: str | None = None
    enabled: bool | None = None
    runtime_version_constraint: TextPatch | None = None


def action_changes(body: UpdateActionRequest | None) -> dict[str, Any]:
    found = changed(body, _CLEARABLE)
    if found.get("reuse", False) is None:
        found["reuse"] = False
    return found
