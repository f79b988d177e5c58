"""The parts of an executor: what reads its queues, and its duties."""

from collections.abc import Collection
from dataclasses import dataclass

from attune.dead_letters.keeper import DeadLetterKeeper
from attune.kernel.settings import QueueBackend
from attune.pipeline.flow import Flow
from attune.pipeline.processors.alerts import Alerts
from attune.pipeline.processors.dead_letter_handler import DeadLetterHandler
from attune.pipeline.processors.executor import Executor
from attune.pipeline.processors.fallback import Fallback
from attune.pipeline.processors.gate_keeper import GateKeeper
from attune.pipeline.processors.proposals import Proposals
from attune.pipeline.processors.queue_timeout import QueueTimeout
from attune.pipeline.processors.retry_release import RetryRelease
from attune.pipeline.processors.run_deadline import RunDeadlineConfig, RunDeadlineMonitor
from attune.pipeline.processors.scheduled_timeout import (
    ExecutionTimeoutConfig,
    ExecutionTimeoutMonitor,
)
from attune.pipeline.processors.worker_health import (
    LostWorkers,
    WorkerProbes,
    WorkerProbesConfig,
)
from attune.pipeline.queues.adaptation import AdaptiveLimits
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.mirror import RedisMirror
from attune.pipeline.queues.redis.queue import RedisQueue
from attune.services.base import Base
from attune.services.connections import RedisPart
from attune.services.part import Part


def executor_parts(base: Base, flow: Flow, beside: Collection[str] = ()) -> list[Part]:
    redis = _redis_parts(base, flow)
    queue: list[Part] = [redis.link, redis.proposals] if redis else []
    return [
        DeadLetterKeeper(base.bus, base.database, base.clock, DeadLetterHandler(flow).handle),
        *queue,
        *Executor(flow, base.bus, beside, redis.proposals if redis else None).processors(),
        Fallback(flow, base.clock),
        GateKeeper(flow, base.clock),
        QueueTimeout(flow, base.clock),
        AdaptiveLimits(base.database, base.clock, flow.change_limit),
        RetryRelease(flow, base.clock),
        *_monitors(base, flow),
        Alerts(flow, base.clock),
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


@dataclass(frozen=True)
class _RedisParts:
    link: RedisPart
    proposals: Proposals


def _redis_parts(base: Base, flow: Flow) -> _RedisParts | None:
    """Where Redis keeps the queues beside the database."""
    url = base.settings.redis.url
    if base.settings.executor.queue.backend is not QueueBackend.REDIS or url is None:
        return None
    link = RedisLink(url.get_secret_value(), base.clock)
    mirror = RedisMirror(link, base.database, base.clock, base.ids)
    return _RedisParts(RedisPart(link), Proposals(flow, RedisQueue(link), mirror, base.clock))
