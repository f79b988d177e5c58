"""Which bus the settings mean."""

import random

from attune.bus.memory import MemoryBus
from attune.bus.memory_broker import MemoryBroker
from attune.bus.outcome import RetryPolicy
from attune.bus.port import Bus
from attune.bus.rabbitmq import RabbitBus
from attune.bus.topology import Topology, standard_topology
from attune.kernel.clock import Clock
from attune.kernel.settings import MessageQueueSettings


def topology_from(settings: MessageQueueSettings) -> Topology:
    return standard_topology(
        executions=settings.exchange,
        message_ttl=settings.message_ttl,
        retry=RetryPolicy(
            first=settings.retry_delay,
            ceiling=settings.retry_delay_max,
            max_retries=settings.max_retries,
        ),
    )


def bus_from(settings: MessageQueueSettings, clock: Clock, source: random.Random) -> Bus:
    """The bus of these settings, not yet started."""
    topology = topology_from(settings)
    if settings.url is None:
        return MemoryBus(
            MemoryBroker(clock),
            topology,
            prefetch=settings.prefetch_count,
            publish_timeout=settings.publish_timeout,
        )
    return RabbitBus(
        settings.url.get_secret_value(),
        topology,
        clock=clock,
        jitter=source,
        prefetch=settings.prefetch_count,
        heartbeat=settings.heartbeat,
        publish_timeout=settings.publish_timeout,
    )
