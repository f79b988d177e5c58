"""What users define, as rows. Fields are the columns; the API shows them under the same names.

`declared` holds what the pack's file said for the field that users may switch themselves (`enabled`, `config`,
`grants`): an update of the pack changes such a field only while nobody else has.
"""

from datetime import datetime
from typing import Any

import msgspec

from attune.catalog.retrying import Limits, Retry
from attune.kernel.ids import (
    ActionId,
    IdentityId,
    PackId,
    PermissionSetId,
    PolicyId,
    RuleId,
    RuntimeId,
    TriggerId,
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    ref: str
    created: datetime
    updated: datetime


class Pack(Row, frozen=True, kw_only=True):
    id: PackId
    label: str
    description: str | None = None
    version: str
    author: str | None = None
    email: str | None = None
    enabled: bool = True
    is_standard: bool = False
    conf_schema: dict[str, Any] = {}
    config: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    tags: list[str] = []
    runtime_deps: list[str] = []
    dependencies: list[str] = []
    testing: Any = None
    pack_dir: str | None = None
    owner_identity: IdentityId | None = None
    declared: dict[str, Any] | None = None


class PermissionSet(Row, frozen=True, kw_only=True):
    id: PermissionSetId
    pack: PackId | None
    pack_ref: str | None
    label: str | None = None
    description: str | None = None
    grants: list[dict[str, Any]]
    is_adhoc: bool
    declared: dict[str, Any] | None = None


class Runtime(Row, frozen=True, kw_only=True):
    id: RuntimeId
    pack: PackId | None
    pack_ref: str | None
    name: str
    aliases: list[str] = []
    description: str | None = None
    distributions: dict[str, Any] = {}
    installation: Any = None
    execution_config: dict[str, Any] = {}
    is_adhoc: bool


class Trigger(Row, frozen=True, kw_only=True):
    """`webhook_config` is not here, because it holds a secret: see `webhooks.WebhookTarget`."""

    id: TriggerId
    pack: PackId | None
    pack_ref: str | None
    label: str
    description: str | None = None
    enabled: bool = True
    type: str | None = None
    param_schema: dict[str, Any] | None = None
    out_schema: dict[str, Any] | None = None
    tags: list[str] = []
    webhook_enabled: bool = False
    webhook_key: str | None = None
    is_adhoc: bool
    declared: dict[str, Any] | None = None


class Action(Row, frozen=True, kw_only=True):
    id: ActionId
    pack: PackId
    pack_ref: str
    label: str
    description: str | None = None
    enabled: bool = True
    entrypoint: str
    runtime: RuntimeId | None = None
    runtime_ref: str | None = None
    runtime_version_constraint: str | None = None
    required_worker_runtimes: dict[str, Any] = {}
    param_schema: dict[str, Any] | None = None
    out_schema: dict[str, Any] | None = None
    parameter_delivery: str = "stdin"
    parameter_format: str = "json"
    output_format: str = "text"
    timeout_seconds: int | None = None
    max_retries: int = 0
    on_worker_lost: str = "retry"
    retry: Retry | None = None
    limits: Limits | None = None
    reuse: bool = False
    worker_selector: dict[str, Any] = {}
    worker_tolerations: list[Any] = []
    worker_affinity: dict[str, Any] = {}
    default_execution_permission_set_refs: list[str] = []
    accesses_mcp: bool = False
    workflow_def: int | None = None
    tags: list[str] = []
    is_adhoc: bool
    declared: dict[str, Any] | None = None


class Rule(Row, frozen=True, kw_only=True):
    """`trigger` and `action` are null while what the refs name is away."""

    id: RuleId
    pack: PackId
    pack_ref: str
    label: str
    description: str | None = None
    enabled: bool = True
    trigger: TriggerId | None
    trigger_ref: str
    trigger_params: dict[str, Any] = {}
    conditions: dict[str, Any] = {}
    action: ActionId | None
    action_ref: str
    action_params: dict[str, Any] = {}
    strict: bool = False
    permission_set_refs: list[str] | None = None
    owner_identity: IdentityId | None = None
    is_adhoc: bool
    declared: dict[str, Any] | None = None


class Policy(Row, frozen=True, kw_only=True):
    """`scope_ref` is an action's or a pack's, and null for a policy over everything.

    With a floor and a ceiling the limit is null and follows the action between them.
    """

    id: PolicyId
    pack: PackId | None
    pack_ref: str | None
    name: str
    description: str | None = None
    enabled: bool = True
    priority: int = 0
    scope_type: str
    scope_ref: str | None
    concurrency_limit: int | None = None
    concurrency_floor: int | None = None
    concurrency_ceiling: int | None = None
    concurrency_method: str = "enqueue"
    concurrency_parameters: list[str] = []
    rate_limit: dict[str, Any] | None = None
    quotas: list[dict[str, Any]] = []
    windows: list[dict[str, Any]] = []
    blackouts: list[dict[str, Any]] = []
    tags: list[str] = []
    is_adhoc: bool
    declared: dict[str, Any] | None = None


class ActionDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What an execution runs. It never changes: a changed action has another one.

    `execution_config` is the runtime's, as it was then; `pack_dir` is below the root of all packs, null for an
    action of a pack without files. An action that `is_inline` has its script in `entrypoint`.
    """

    action_ref: str
    pack_ref: str
    pack_version: str
    pack_dir: str | None
    entrypoint: str
    is_inline: bool
    runtime_ref: str | None
    runtime_version_constraint: str | None
    execution_config: dict[str, Any]
    param_schema: dict[str, Any] | None
    out_schema: dict[str, Any] | None
    parameter_delivery: str
    parameter_format: str
    output_format: str
    timeout_seconds: int | None
    on_worker_lost: str
    required_worker_runtimes: dict[str, Any] = {}
    limits: Limits | None = None
    reuse: bool = False
