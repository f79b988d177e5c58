"""Bodies and answers of /actions, under the names of the contract."""

from datetime import datetime

import pydantic
from pydantic import Field

from attune.api.fields import Filled, Id, JsonObject, Ref, Schema, TextPatch
from attune.api.placement_models import WorkerAffinity, WorkerToleration

_PLACEMENT = "Answered as it was written."


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
    required_worker_runtimes: dict[str, str] | None = None
    param_schema: Schema | None = None
    out_schema: Schema | None = None
    parameter_delivery: str | None = Field(default=None, examples=["stdin", "file"])
    parameter_format: str | None = Field(default=None, examples=["json", "dotenv", "yaml"])
    output_format: str | None = Field(default=None, examples=["text", "json", "yaml", "jsonl"])
    timeout_seconds: int | None = Field(default=None, description="Above 0; null for none.")
    max_retries: int | None = None
    on_worker_lost: str | None = Field(default=None, examples=["retry", "fail"])
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
    runtime_version_constraint: str | None = None


class UpdateActionRequest(_ActionFields):
    label: Filled | None = None
    entrypoint: str | None = None
    enabled: bool | None = None
    runtime_version_constraint: TextPatch | None = None
