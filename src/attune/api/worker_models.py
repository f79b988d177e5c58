"""Bodies and answers of /workers, under the names of the contract."""

from datetime import datetime
from typing import Annotated, Any, Self

import pydantic
from pydantic import Field

from attune.kernel.settings import WorkerType
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.workers.history import WorkerEvent
from attune.pipeline.workers.model import HealthState, WorkerStatus
from attune.pipeline.workers.queries import SeenWorker

_S = ExecutionStatus


class CordonRequest(pydantic.BaseModel):
    """`reason` is kept with who asked: in the worker's history, and in the worker while it is cordoned."""

    reason: Annotated[str, Field(max_length=1000, examples=["kernel upgrade"])] | None = None


class WorkerRuntimeSupport(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(from_attributes=True)

    name: str
    versions: list[str]


class WorkerLoadSnapshot(pydantic.BaseModel):
    """What it was handed, by status. `queue_depth` is what it has not started."""

    requested: int
    scheduling: int
    scheduled: int
    running: int
    canceling: int
    total_active: int
    max_concurrent_executions: int | None
    utilization_percent: int | None
    queue_depth: int | None
    active_rules: int | None = None
    max_concurrent_sensors: int | None = None
    sensor_processes_monitored: int | None = None
    sensor_processes_running: int | None = None

    @classmethod
    def of(cls, seen: SeenWorker) -> Self:
        load, most = seen.load, seen.worker.capacity
        words = (_S.REQUESTED, _S.SCHEDULING, _S.SCHEDULED, _S.RUNNING, _S.CANCELING)
        counts: dict[str, int] = {word.value: load.get(word, 0) for word in words}
        return cls(
            **counts,
            total_active=sum(counts.values()),
            max_concurrent_executions=most,
            utilization_percent=round(100 * counts["running"] / most) if most else None,
            queue_depth=counts["scheduled"],
        )


class WorkerSetAside(pydantic.BaseModel):
    """An action of which the worker gets nothing until then, having failed it so often in a row."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    action_ref: str
    failures: int
    until: datetime
    error: str | None


class WorkerSummary(pydantic.BaseModel):
    """`health_state` is what to look at first; `status` is what is known of the worker itself.

    `asked_at` is the first question to which it owes an answer; `answered_at` is when it last gave one.
    """

    id: int
    name: str
    worker_type: WorkerType
    worker_role: str
    status: WorkerStatus
    health_state: HealthState
    host: str | None
    port: int | None
    supported_runtimes: list[WorkerRuntimeSupport]
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    load: WorkerLoadSnapshot
    last_heartbeat: datetime
    heartbeat_age_seconds: int
    heartbeat_stale: bool
    asked_at: datetime | None
    answered_at: datetime | None
    set_aside: list[WorkerSetAside]
    cordoned: bool
    cordon_reason: str | None
    cordoned_by: int | None
    cordoned_by_login: str | None
    cordoned_at: datetime | None
    created: datetime
    updated: datetime

    @classmethod
    def of(cls, seen: SeenWorker) -> Self:
        worker = seen.worker
        own = {name: getattr(worker, name) for name in worker.__struct_fields__}
        return cls.model_validate(
            own
            | {
                "supported_runtimes": [
                    WorkerRuntimeSupport.model_validate(each) for each in worker.supported_runtimes
                ],
                "health_state": seen.health_state,
                "load": WorkerLoadSnapshot.of(seen),
                "heartbeat_age_seconds": int(seen.age.total_seconds()),
                "heartbeat_stale": seen.stale,
                "set_aside": [WorkerSetAside.model_validate(each) for each in seen.set_aside],
            }
        )


class WorkerExecution(pydantic.BaseModel):
    """`since` is when it got its status. One that it has not begun by `lease_expires_at` is taken from it."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    action_ref: str
    status: ExecutionStatus
    attempt: int
    since: datetime
    started_at: datetime | None
    lease_expires_at: datetime | None


class WorkerHistoryEntry(pydantic.BaseModel):
    """`downtime_seconds` is how long nothing was heard of it; `execution` is the one that it is about."""

    model_config = pydantic.ConfigDict(from_attributes=True)

    id: int
    event: WorkerEvent
    at: datetime
    execution: int | None
    downtime_seconds: float | None
    text: str | None


class QueueStatsResponse(pydantic.BaseModel):
    """`max_concurrent` is the limit of the policy in effect; without one, what the workers present can run."""

    action_id: int
    action_ref: str
    queue_length: int
    active_count: int
    max_concurrent: int
    total_enqueued: int
    total_completed: int
    oldest_enqueued_at: datetime | None
    last_updated: datetime
