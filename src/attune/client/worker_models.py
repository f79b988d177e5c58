"""Who runs executions, under the names of the API."""

from datetime import datetime

import msgspec

from attune.client.models import Stored
from attune.kernel.ids import IdentityId, WorkerId


class WorkerLoad(msgspec.Struct, frozen=True, kw_only=True):
    running: int = 0
    scheduled: int = 0
    total_active: int = 0
    max_concurrent_executions: int | None = None
    utilization_percent: int | None = None
    queue_depth: int | None = None


class WorkerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    versions: list[str] = []


class Worker(Stored, frozen=True, kw_only=True):
    id: WorkerId
    name: str
    worker_role: str
    worker_type: str
    status: str | None = None
    health_state: str | None = None
    host: str | None = None
    port: int | None = None
    last_heartbeat: datetime | None = None
    heartbeat_age_seconds: float | None = None
    heartbeat_stale: bool | None = None
    cordoned: bool = False
    cordon_reason: str | None = None
    cordoned_by: IdentityId | None = None
    cordoned_at: datetime | None = None
    load: WorkerLoad = WorkerLoad()
    supported_runtimes: list[WorkerRuntime] = []
