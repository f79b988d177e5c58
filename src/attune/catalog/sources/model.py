"""What a pack's files define. Fields have the names of the columns they end in; `file` is for messages."""

from typing import Any

import msgspec

from attune.catalog.retrying import Limits, Retry


class Source(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    ref: str
    description: str | None


class PermissionSetSource(Source, frozen=True):
    label: str | None
    grants: list[dict[str, Any]]


class RuntimeSource(Source, frozen=True):
    """`execution_config` is kept as it was written, unknown keys included."""

    name: str
    aliases: list[str]
    distributions: dict[str, Any]
    installation: Any
    execution_config: dict[str, Any]


class TriggerSource(Source, frozen=True):
    label: str
    enabled: bool
    type: str | None
    param_schema: dict[str, Any] | None
    out_schema: dict[str, Any] | None
    tags: list[str]


class ActionSource(Source, frozen=True):
    """`entrypoint` is kept as it was written: relative to `actions/` or to the pack's root."""

    label: str
    enabled: bool
    entrypoint: str
    runtime_ref: str | None
    runtime_version_constraint: str | None
    required_worker_runtimes: dict[str, Any]
    param_schema: dict[str, Any] | None
    out_schema: dict[str, Any] | None
    parameter_delivery: str
    parameter_format: str
    output_format: str
    timeout_seconds: int | None
    max_retries: int
    on_worker_lost: str
    retry: Retry | None
    limits: Limits | None
    reuse: bool
    worker_selector: dict[str, Any]
    worker_tolerations: list[Any]
    worker_affinity: dict[str, Any]
    default_execution_permission_set_refs: list[str]
    accesses_mcp: bool
    tags: list[str]


class PolicySource(Source, frozen=True):
    """`scope_ref` is null for a policy over everything; the limit is null with a floor and a ceiling."""

    name: str
    enabled: bool
    priority: int
    scope_type: str
    scope_ref: str | None
    concurrency_limit: int | None
    concurrency_floor: int | None
    concurrency_ceiling: int | None
    concurrency_method: str
    concurrency_parameters: list[str]
    rate_limit: dict[str, Any] | None
    quotas: list[dict[str, Any]]
    windows: list[dict[str, Any]]
    blackouts: list[dict[str, Any]]
    tags: list[str]


class RuleSource(Source, frozen=True):
    label: str
    enabled: bool
    trigger_ref: str
    trigger_params: dict[str, Any]
    conditions: dict[str, Any]
    action_ref: str
    action_params: dict[str, Any]
    strict: bool
    permission_set_refs: list[str] | None


class PackSource(msgspec.Struct, frozen=True, kw_only=True):
    """A whole pack without a fault. `warnings` tell what was ignored or cannot be used yet."""

    ref: str
    label: str
    description: str | None
    version: str
    author: str | None
    email: str | None
    enabled: bool
    is_standard: bool
    conf_schema: dict[str, Any]
    config: dict[str, Any]
    meta: dict[str, Any]
    tags: list[str]
    runtime_deps: list[str]
    dependencies: list[str]
    testing: Any
    permission_sets: tuple[PermissionSetSource, ...] = ()
    runtimes: tuple[RuntimeSource, ...] = ()
    triggers: tuple[TriggerSource, ...] = ()
    actions: tuple[ActionSource, ...] = ()
    policies: tuple[PolicySource, ...] = ()
    rules: tuple[RuleSource, ...] = ()
    warnings: tuple[str, ...] = ()
