"""Who runs executions, under the names of the API."""

from datetime import datetime
from typing import Any

import msgspec

from attune.client.models import Stored
from attune.kernel.ids import ExecutionId, IdentityId, WorkerId
from attune.kernel.statuses import ExecutionStatus


class WorkerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What it was handed, by status; together `total_active`. `queue_depth` is what it has not begun."""

    requested: int = 0
    scheduling: int = 0
    scheduled: int = 0
    running: int = 0
    canceling: int = 0
    total_active: int = 0
    max_concurrent_executions: int | None = None
    utilization_percent: int | None = None
    queue_depth: int | None = None
    active_rules: int | None = None
    max_concurrent_sensors: int | None = None
    sensor_processes_monitored: int | None = None
    sensor_processes_running: int | None = None


class WorkerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    versions: list[str] = []


class WorkerSetAside(msgspec.Struct, frozen=True, kw_only=True):
    """It gets nothing of that action until then, having failed it so often in a row."""

    action_ref: str
    failures: int
    until: datetime
    error: str | None = None


class Worker(Stored, frozen=True, kw_only=True):
    """`health_state` is what to look at first; `asked_at` is the first question to which it owes an answer."""

    id: WorkerId
    name: str
    worker_role: str
    worker_type: str
    status: str | None = None
    health_state: str | None = None
    host: str | None = None
    port: int | None = None
    labels: dict[str, str] = {}
    taints: list[dict[str, Any]] = []
    last_heartbeat: datetime | None = None
    heartbeat_age_seconds: float | None = None
    heartbeat_stale: bool | None = None
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    cordoned: bool = False
    cordon_reason: str | None = None
    cordoned_by: IdentityId | None = None
    cordoned_by_login: str | None = None
    cordoned_at: datetime | None = None
    load: WorkerLoad = WorkerLoad()
    set_aside: list[WorkerSetAside] = []
    supported_runtimes: list[WorkerRuntime] = []


class WorkerExecution(msgspec.Struct, frozen=True, kw_only=True):
    """`since` is when it got its status. One that is not begun by `lease_expires_at` is taken from the worker."""

    id: ExecutionId
    action_ref: str
    status: ExecutionStatus
    attempt: int
    since: datetime
    started_at: datetime | None = None
    lease_expires_at: datetime | None = None


class WorkerHistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it. `downtime_seconds` is how long nothing was heard of it."""

    id: int
    event: str
    at: datetime
    execution: ExecutionId | None = None
    downtime_seconds: float | None = None
    text: str | None = None
