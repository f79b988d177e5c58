"""Workers and executions that wait for one."""

from datetime import UTC, datetime
from typing import Any

from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId, WorkerId
from attune.kernel.settings import WorkerType
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.model import Entry, State
from attune.pipeline.scheduling.model import Demand, Waiting
from attune.pipeline.workers.model import RuntimeSupport, Worker, WorkerStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PYTHON = RuntimeSupport("python", ["3.11.2", "3.12.1"])
NODE = RuntimeSupport("nodejs", ["20.11.1"])
SHELL = RuntimeSupport("shell", ["5.2.15"])


def worker(number: int = 1, capacity: int = 2, **fields: Any) -> Worker:
    return Worker(
        id=WorkerId(number),
        name=f"worker-{number}",
        worker_type=WorkerType.LOCAL,
        host=None,
        port=None,
        status=WorkerStatus.ACTIVE,
        capacity=capacity,
        supported_runtimes=fields.pop("runtimes", [PYTHON, SHELL]),
        labels=fields.pop("labels", {}),
        taints=fields.pop("taints", []),
        incarnation="x",
        last_heartbeat=NOW,
        created=NOW,
        updated=NOW,
    )


def waiting(number: int, demand: Demand, **fields: Any) -> Waiting:
    entry = Entry(
        execution=ExecutionId(number),
        lane=LaneId(1),
        band=Priority.NORMAL,
        sequence=number,
        state=State.READY,
        reason=GateName.WORKER,
        enqueued_at=NOW,
        attempt=fields.pop("attempt", 1),
        definition=ActionDefinitionId(1),
        **fields,
    )
    return Waiting(entry, demand)
