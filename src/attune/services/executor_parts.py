"""The parts of an executor: what reads its queues, and its duties."""

import importlib
from typing import Any

from attune.dead_letters.keeper import DeadLetterKeeper
from attune.kernel.settings import QueueBackend
from attune.pipeline.flow import Flow
from attune.pipeline.processors.alerts import Alerts
from attune.pipeline.processors.dead_letter_handler import DeadLetterHandler
from attune.pipeline.processors.executor import Executor
from attune.pipeline.processors.fallback import Fallback
from attune.pipeline.processors.gate_keeper import GateKeeper
from attune.pipeline.processors.queue_timeout import QueueTimeout
from attune.pipeline.processors.retry_release import RetryRelease
from attune.pipeline.processors.run_deadline import RunDeadlineConfig, RunDeadlineMonitor
from attune.pipeline.processors.scheduled_timeout import (
    ExecutionTimeoutConfig,
    ExecutionTimeoutMonitor,
)
from attune.pipeline.processors.tidying import Tidying
from attune.pipeline.processors.worker_health import (
    LostWorkers,
    WorkerProbes,
    WorkerProbesConfig,
)
from attune.pipeline.queues.adaptation import AdaptiveLimits
from attune.services.base import Base, source_of
from attune.services.part import Part


def parts(base: Base) -> list[Part]:
    return executor_parts(base, base.flow(source_of("executor")))


def executor_parts(base: Base, flow: Flow) -> list[Part]:
    redis = _redis_parts(base, flow)
    queue: list[Part] = [redis.link, redis.proposals] if redis else []
    return [
        DeadLetterKeeper(base.bus, base.database, base.clock, DeadLetterHandler(flow).handle),
        *queue,
        *Executor(flow, base.bus, redis.proposals if redis else None).processors(),
        Fallback(flow, base.clock),
        GateKeeper(flow, base.clock),
        QueueTimeout(flow, base.clock),
        AdaptiveLimits(base.database, base.clock, flow.change_limit),
        RetryRelease(flow, base.clock),
        *_monitors(base, flow),
        Alerts(flow, base.clock),
        # SQLite leaves nothing behind that would have to be taken away.
        *([] if base.settings.embedded else [Tidying(base.database, base.clock)]),
    ]


def _monitors(base: Base, flow: Flow) -> list[Part]:
    """What looks after workers, and ends attempts whose worker does not."""
    interval = base.settings.executor.timeout_check_interval
    probing = WorkerProbesConfig(interval=base.settings.executor.health_check_interval)
    return [
        LostWorkers(flow, base.clock),
        WorkerProbes(flow, base.bus, base.ids, base.clock, probing),
        ExecutionTimeoutMonitor(flow, base.clock, ExecutionTimeoutConfig(interval=interval)),
        RunDeadlineMonitor(flow, base.clock, RunDeadlineConfig(interval=interval)),
    ]


def _redis_parts(base: Base, flow: Flow) -> Any:
    """Where Redis keeps the queues beside the database, and loaded only there; else None."""
    url = base.settings.redis.url
    if base.settings.executor.queue.backend is not QueueBackend.REDIS or url is None:
        return None
    module = importlib.import_module("attune.services.redis_parts")
    return module.redis_parts(base, flow, url.get_secret_value())
