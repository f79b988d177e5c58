"""What users define: packs, actions, triggers and rules, under the names of the API."""

from typing import Any

import msgspec

from attune.client.models import Stored
from attune.kernel.ids import ActionId, IdentityId, PackId, RuleId, RuntimeId, TriggerId


class PackSummary(Stored, frozen=True, kw_only=True):
    id: PackId
    ref: str
    label: str
    version: str
    description: str | None = None
    is_standard: bool = False
    tags: list[str] = []


class Pack(PackSummary, frozen=True, kw_only=True):
    conf_schema: Any = None
    config: Any = None
    meta: Any = None
    dependencies: list[str] = []
    runtime_deps: list[str] = []


class PackInstallation(msgspec.Struct, frozen=True, kw_only=True):
    """`warnings` is what the pack's author should know: what was left out, and why."""

    pack: Pack
    test_result: Any = None
    tests_skipped: bool = False
    warnings: list[str] = []


class ActionSummary(Stored, frozen=True, kw_only=True):
    id: ActionId
    ref: str
    label: str
    pack_ref: str
    entrypoint: str | None = None
    description: str | None = None
    runtime: RuntimeId | None = None
    runtime_ref: str | None = None
    runtime_version_constraint: str | None = None
    workflow_def: int | None = None
    accesses_mcp: bool = False
    default_execution_permission_set_refs: list[str] | None = None
    required_worker_runtimes: Any = None
    worker_selector: Any = None
    worker_tolerations: Any = None
    worker_affinity: Any = None


class Action(ActionSummary, frozen=True, kw_only=True):
    """The schemas come in either of two forms: JSON Schema, or `{name: {type, required, …}}`."""

    pack: PackId | None = None
    is_adhoc: bool = False
    param_schema: Any = None
    out_schema: Any = None
    output_format: str | None = None
    parameter_format: str | None = None
    timeout_seconds: float | None = None
    max_retries: int | None = None
    on_worker_lost: str | None = None
    retry: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    reuse: bool = False


class TriggerSummary(Stored, frozen=True, kw_only=True):
    id: TriggerId
    ref: str
    label: str
    enabled: bool
    pack_ref: str | None = None
    description: str | None = None
    webhook_enabled: bool = False


class Trigger(TriggerSummary, frozen=True, kw_only=True):
    pack: PackId | None = None
    is_adhoc: bool = False
    param_schema: Any = None
    out_schema: Any = None
    sensor: int | None = None
    sensor_ref: str | None = None
    webhook_key: str | None = None
    webhook_url: str | None = None


class RuleSummary(Stored, frozen=True, kw_only=True):
    id: RuleId
    ref: str
    label: str
    enabled: bool
    pack_ref: str
    trigger_ref: str
    action_ref: str
    description: str | None = None
    action_params: dict[str, Any] = {}
    trigger_params: dict[str, Any] = {}
    permission_set_refs: list[str] | None = None


class Rule(RuleSummary, frozen=True, kw_only=True):
    action: ActionId | None = None
    trigger: TriggerId | None = None
    pack: PackId | None = None
    conditions: Any = None
    is_adhoc: bool = False
    owner_identity: IdentityId | None = None
    strict: bool | None = None
