"""Bodies and answers of /packs, under the names of the contract."""

from datetime import datetime
from typing import Any

import pydantic

from attune.api.fields import Filled, JsonObject, Ref, TextPatch


class PackSummary(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    ref: str
    label: str
    description: str | None
    version: str
    is_standard: bool
    tags: list[str]
    created: datetime
    updated: datetime


class PackResponse(PackSummary):
    author: str | None
    email: str | None
    enabled: bool
    conf_schema: JsonObject
    config: JsonObject
    meta: JsonObject
    dependencies: list[str]
    runtime_deps: list[str]
    owner_identity: int | None


class CreatePackRequest(pydantic.BaseModel):
    ref: Ref
    label: Filled
    version: Filled
    description: str | None = None
    is_standard: bool | None = None
    conf_schema: JsonObject | None = None
    config: JsonObject | None = None
    meta: JsonObject | None = None
    tags: list[str] | None = None
    dependencies: list[str] | None = None
    runtime_deps: list[str] | None = None


class UpdatePackRequest(pydantic.BaseModel):
    label: Filled | None = None
    version: Filled | None = None
    description: TextPatch | None = None
    is_standard: bool | None = None
    conf_schema: JsonObject | None = None
    config: JsonObject | None = None
    meta: JsonObject | None = None
    tags: list[str] | None = None
    dependencies: list[str] | None = None
    runtime_deps: list[str] | None = None


class InstallPackRequest(pydantic.BaseModel):
    """`source` is a folder or a .tar.gz on the server."""

    source: Filled
    ref_spec: str | None = None
    skip_deps: bool | None = None
    skip_tests: bool | None = None


class RegisterPackRequest(pydantic.BaseModel):
    """`path` is a folder on the server; `force` updates a pack that is there already."""

    path: Filled
    force: bool | None = None
    skip_tests: bool | None = None


class PackInstallResponse(pydantic.BaseModel):
    """`warnings` is what the pack's author should know."""

    pack: PackResponse
    test_result: None = None
    tests_skipped: bool = True
    warnings: list[str] = []


class RegisteredPackResponse(PackResponse, PackInstallResponse):
    """The pack's own fields, and the same again as an installation has them."""


class PackTestExecution(pydantic.BaseModel):
    id: int
    packId: int  # noqa: N815 - the contract's names
    packVersion: str  # noqa: N815
    triggerReason: str  # noqa: N815
    executionTime: datetime  # noqa: N815
    durationMs: int  # noqa: N815
    totalTests: int  # noqa: N815
    passed: int
    failed: int
    skipped: int
    passRate: float  # noqa: N815
    result: Any
    created: datetime


class WorkflowSyncResult(pydantic.BaseModel):
    ref_name: str
    workflow_def_id: int
    created: bool
    warnings: list[str]


class PackWorkflowSyncResponse(pydantic.BaseModel):
    pack_ref: str
    loaded_count: int = 0
    registered_count: int = 0
    workflows: list[WorkflowSyncResult] = []
    errors: list[str] = []


class PackWorkflowValidationResponse(pydantic.BaseModel):
    pack_ref: str
    validated_count: int = 0
    error_count: int = 0
    errors: dict[str, list[str]] = {}
