"""What the bus costs over the bare driver: publishing with confirms, and consuming with acknowledgements."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp.commands import Basic

from attune.bus.memory import MemoryBus
from attune.bus.memory_broker import MemoryBroker
from attune.bus.port import Bus
from attune.bus.rabbitmq import RabbitBus
from attune.bus.topology import Queue, standard_topology
from attune.kernel.clock import SystemClock
from attune.kernel.envelope import Envelope, Stamp, decode, encode
from attune.kernel.ids import ExecutionId, Ids
from attune.kernel.messages import ExecutionRequested, MessageType
from bench.measure import Case
from harness.rabbitmq import RabbitMQ

QUEUE = "bench.ours"
BARE_QUEUE = "bench.bare"
PREFETCH = 100
STAMP = Stamp("bench", SystemClock(), Ids(random.Random(1)))
PROPERTIES = Basic.Properties(delivery_mode=2, content_type="application/json")

Publish = Callable[[int], Awaitable[None]]


def message() -> Envelope:
    item = ExecutionRequested(execution_id=ExecutionId(7), action_ref="core.noop")
    return STAMP.envelope(MessageType.EXECUTION_REQUESTED, item)


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case]]:
    scale = 1 if quick else 4
    topology = standard_topology()
    memory = MemoryBus(MemoryBroker(SystemClock()), topology)
    with RabbitMQ() as server:
        url = server.create_vhost()
        rabbit = RabbitBus(url, topology, clock=SystemClock(), jitter=random.Random(1))
        connection = await aiormq.connect(url)
        bare = await connection.channel()
        await bare.queue_declare(BARE_QUEUE, durable=True)
        for bus in (memory, rabbit):
            await bus.start()
            await bus.declare(Queue(name=QUEUE))
        yield [
            *_publishing(bare, rabbit, memory, scale),
            *_consuming(connection, rabbit, memory, scale),
        ]
        await rabbit.close()
        await memory.close()
        await connection.close()


def _publishing(bare: AbstractChannel, rabbit: Bus, memory: Bus, scale: int) -> list[Case]:
    async def bare_one() -> None:
        await bare.basic_publish(encode(message()), routing_key=BARE_QUEUE, properties=PROPERTIES)

    async def publish_bare(size: int) -> None:
        await asyncio.gather(*(bare_one() for _ in range(size)))

    found = []
    for size, count in ((1, 100), (10, 50), (100, 10)):
        label = f"publish {size} with confirms"
        found += [
            Case(f"aiormq: {label}", _repeated(publish_bare, size, count * scale)),
            Case(
                f"RabbitMQ bus: {label}",
                _repeated(_publisher(rabbit), size, count * scale),
                beside=f"aiormq: {label}",
            ),
            Case(f"in-process bus: {label}", _repeated(_publisher(memory), size, count * scale)),
        ]
    return found


def _publisher(bus: Bus) -> Publish:
    async def publish(size: int) -> None:
        await bus.publish(*(message() for _ in range(size)), to=QUEUE)

    return publish


def _repeated(publish: Publish, size: int, count: int) -> Callable[[], Awaitable[int]]:
    async def work() -> int:
        for _ in range(count):
            await publish(size)
        return size * count

    return work


def _consuming(
    connection: aiormq.abc.AbstractConnection, rabbit: Bus, memory: Bus, scale: int
) -> list[Case]:
    """Each takes from its queue what publishing has left there, and no more."""
    count = 500 * scale
    baseline = f"aiormq: consume, prefetch {PREFETCH}"

    async def bare() -> int:
        channel = await connection.channel()
        await channel.basic_qos(prefetch_count=PREFETCH)
        done = _Countdown(count)

        async def take(delivery: DeliveredMessage) -> None:
            if done.over:
                return
            decode(delivery.body)
            await channel.basic_ack(delivery.delivery_tag or 0, wait=False)
            done.one()

        consuming = await channel.basic_consume(BARE_QUEUE, take)
        await done.wait()
        await channel.basic_cancel(consuming.consumer_tag or "")
        await channel.close()
        return count

    return [
        Case(baseline, bare),
        Case(
            f"RabbitMQ bus: consume, prefetch {PREFETCH}", _consumer(rabbit, count), beside=baseline
        ),
        Case(f"in-process bus: consume, prefetch {PREFETCH}", _consumer(memory, count)),
    ]


def _consumer(bus: Bus, count: int) -> Callable[[], Awaitable[int]]:
    async def work() -> int:
        done = _Countdown(count)

        async def take(_: Envelope) -> None:
            done.one()

        subscription = await bus.consume(QUEUE, take, prefetch=PREFETCH)
        await done.wait()
        await subscription.cancel()
        return count

    return work


class _Countdown:
    def __init__(self, count: int) -> None:
        self._left = count
        self._over = asyncio.Event()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def one(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._over.set()

    async def wait(self) -> None:
        await self._over.wait()
