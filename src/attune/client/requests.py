"""What may be asked for. A key that is left out is not sent, so that `None` can mean null."""

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

from attune.kernel.statuses import ExecutionStatus


class Paging(TypedDict, total=False):
    """`page` counts from 1; a page holds at most 100."""

    page: int
    page_size: int


class RetryRules(TypedDict, total=False):
    """When the next attempt comes, in seconds, and after what: `on` has failed, timeout, not_started, worker_lost.

    `backoff` is one of constant, linear, exponential; `queue_place` keep or tail. `exit_codes` and `matching` narrow
    failed down to those that fit one of them.
    """

    delay: float
    backoff: str
    max_delay: float | None
    jitter: float
    on: Sequence[str]
    exit_codes: Sequence[int]
    matching: Sequence[str]
    queue_place: str


class RunLimits(TypedDict, total=False):
    """What a run may use. `output_mb` is how much of each stream is kept."""

    cpu_seconds: float | None
    memory_mb: int | None
    open_files: int | None
    processes: int | None
    output_mb: float | None


class ExecutionOptions(TypedDict, total=False):
    """`priority` is one of critical, high, normal, low, background. A time in the queue does not count for the limit.

    `max_retries` and `retry` stand in place of the action's own.
    """

    env_vars: Mapping[str, str]
    permission_set_refs: Sequence[str]
    worker_selector: Mapping[str, str]
    worker_tolerations: Sequence[Mapping[str, Any]]
    worker_affinity: Mapping[str, Any]
    priority: str
    idempotency_key: str
    timeout_seconds: float
    max_retries: int
    retry: RetryRules
    trace_tag: str


class ExecutionRequest(ExecutionOptions, total=False):
    action_ref: Required[str]
    parameters: Mapping[str, Any]


class ExecutionFilters(Paging, total=False):
    """A ref is exact, or `pack.*`."""

    status: ExecutionStatus | str
    action_ref: str
    pack_name: str
    rule_ref: str
    trigger_ref: str
    executor: int
    result_contains: str
    enforcement: int
    parent: int
    top_level_only: bool
    include_total: bool


class EventOptions(TypedDict, total=False):
    """`trigger_instance_id` of the form rule_<id> binds the event to that rule."""

    config: Mapping[str, Any]
    trigger_instance_id: str
    idempotency_key: str


class EventRequest(EventOptions, total=False):
    trigger_ref: Required[str]
    payload: Mapping[str, Any]


class EventFilters(Paging, total=False):
    trigger: int
    trigger_ref: str
    rule_ref: str
    source: int
    include_total: bool


class EnforcementFilters(Paging, total=False):
    rule: int
    event: int
    status: str
    trigger_ref: str
    rule_ref: str
    include_total: bool


class RuleChanges(TypedDict, total=False):
    label: str
    description: str | None
    trigger_ref: str
    trigger_params: Mapping[str, Any]
    conditions: Any
    action_ref: str
    action_params: Mapping[str, Any]
    enabled: bool
    permission_set_refs: Sequence[str] | None
    strict: bool


class NewRule(RuleChanges, total=False):
    ref: Required[str]
    pack_ref: Required[str]


class ActionChanges(TypedDict, total=False):
    """None takes a time limit, `retry`, `limits` or `reuse` away."""

    label: str
    description: str | None
    entrypoint: str
    runtime_ref: str
    param_schema: Any
    out_schema: Any
    output_format: str
    parameter_format: str
    timeout_seconds: float | None
    max_retries: int
    on_worker_lost: str
    retry: RetryRules | None
    limits: RunLimits | None
    reuse: bool | None
    required_worker_runtimes: Mapping[str, str]
    default_execution_permission_set_refs: Sequence[str]
    worker_selector: Mapping[str, str]
    worker_tolerations: Sequence[Mapping[str, Any]]
    worker_affinity: Mapping[str, Any]


class NewAction(ActionChanges, total=False):
    ref: Required[str]
    pack_ref: Required[str]


class NewTrigger(TypedDict, total=False):
    ref: Required[str]
    label: Required[str]
    pack_ref: str
    description: str | None
    enabled: bool
    param_schema: Any
    out_schema: Any


class TriggerChanges(TypedDict, total=False):
    """`description` is sent as the API's patch object: None clears it."""

    label: str
    description: str | None
    enabled: bool
    param_schema: Any
    out_schema: Any
    webhook_config: Mapping[str, Any]


class WorkerFilters(Paging, total=False):
    role: str
    status: str
    cordoned: bool
    health_state: str


class QueueFilters(Paging, total=False):
    """A ref is exact, or `pack.*`; `waiting` leaves out queues in which nothing does."""

    action_ref: str
    waiting: bool


class EntryFilters(Paging, total=False):
    """`state` is one of queued, ready, handed; by default the first two. `group` has the group's values."""

    state: str
    group: Mapping[str, Any]


class SettingChanges(TypedDict, total=False):
    """None brings back the default."""

    max_concurrent_executions: int | None
    max_queue_length: int | None
    queue_timeout_seconds: float | None
    ageing_seconds: float | None
