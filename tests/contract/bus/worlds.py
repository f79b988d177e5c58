"""One broker with any number of buses on it, in the two forms that the suite runs on."""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from typing import Protocol

import aiormq

from attune.bus.memory import MemoryBus
from attune.bus.memory_broker import MemoryBroker
from attune.bus.outcome import RetryPolicy
from attune.bus.port import Bus
from attune.bus.rabbitmq import RabbitBus
from attune.bus.topology import Topology, standard_topology
from attune.kernel.clock import Clock, SystemClock
from attune.simulation.clock import ManualClock
from harness.rabbitmq import RabbitMQ

Condition = Callable[[], bool | Awaitable[bool]]

# Short, because on RabbitMQ the time is real.
RETRY = RetryPolicy(first=0.1, factor=2.0, ceiling=0.4, max_retries=4)
TOPOLOGY = standard_topology(retry=RETRY)


class World(Protocol):
    clock: Clock

    async def make_bus(
        self,
        topology: Topology = TOPOLOGY,
        *,
        publish_timeout: float = 30.0,
        close_timeout: float = 10.0,
    ) -> Bus:
        """A started bus, as one more process would have it; it is closed with the world."""

    async def publish_raw(self, exchange: str, routing_key: str, body: bytes) -> None:
        """Publish as a foreign client; the empty exchange takes the name of a queue."""

    async def stop(self) -> None: ...

    async def start(self) -> None: ...

    async def drop_connections(self) -> None:
        """Break every connection from the broker's side; the broker itself stays."""

    async def until(self, condition: Condition, what: str, within: float = 20.0) -> None:
        """Let the world's time pass until the condition holds."""

    async def close(self) -> None: ...


async def holds(condition: Condition) -> bool:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer


class MemoryWorld:
    def __init__(self) -> None:
        self.manual = ManualClock()
        self.clock: Clock = self.manual
        self.broker = MemoryBroker(self.clock)
        self._buses: list[MemoryBus] = []

    async def make_bus(
        self,
        topology: Topology = TOPOLOGY,
        *,
        publish_timeout: float = 30.0,
        close_timeout: float = 10.0,
    ) -> Bus:
        bus = MemoryBus(
            self.broker, topology, publish_timeout=publish_timeout, close_timeout=close_timeout
        )
        self._buses.append(bus)
        await bus.start()
        return bus

    async def publish_raw(self, exchange: str, routing_key: str, body: bytes) -> None:
        self.broker.publish_raw(exchange, routing_key, body)

    async def stop(self) -> None:
        self.broker.stop()

    async def start(self) -> None:
        self.broker.start()

    async def drop_connections(self) -> None:
        self.broker.drop_connections()

    async def until(self, condition: Condition, what: str, within: float = 20.0) -> None:
        deadline = self.clock.monotonic() + within
        while not await holds(condition):
            assert self.clock.monotonic() < deadline, f"{what}: not within {within} s"
            await self.manual.advance(0.01)

    async def close(self) -> None:
        for bus in self._buses:
            closing = asyncio.create_task(bus.close())
            await self.until(closing.done, "the bus closes", 60.0)


class RabbitWorld:
    def __init__(self, server: RabbitMQ, url: str) -> None:
        self.clock: Clock = SystemClock()
        self.server = server
        self.url = url
        self._buses: list[RabbitBus] = []

    async def make_bus(
        self,
        topology: Topology = TOPOLOGY,
        *,
        publish_timeout: float = 30.0,
        close_timeout: float = 10.0,
        url: str | None = None,
        heartbeat: int = 10,
    ) -> RabbitBus:
        bus = RabbitBus(
            url or self.url,
            topology,
            clock=self.clock,
            jitter=random.Random(7),
            heartbeat=heartbeat,
            publish_timeout=publish_timeout,
            close_timeout=close_timeout,
        )
        self._buses.append(bus)
        await bus.start()
        return bus

    async def publish_raw(self, exchange: str, routing_key: str, body: bytes) -> None:
        async with aiormq.connect(self.url) as connection:
            channel = await connection.channel()
            await channel.basic_publish(body, exchange=exchange, routing_key=routing_key)

    async def stop(self) -> None:
        await asyncio.to_thread(self.server.stop)

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)

    async def drop_connections(self) -> None:
        """The server knows a young connection for a moment before it can close it, so ask until it is gone."""
        alive = sum(bus.connected for bus in self._buses)

        async def all_known() -> bool:
            return len(await self._connections()) >= alive

        await self.until(all_known, "the broker lists the connections")
        old = await self._connections()

        async def old_gone() -> bool:
            if not old & await self._connections():
                return True
            await asyncio.to_thread(self.server.close_connections, self.url)
            return False

        await self.until(old_gone, "the broker closes the connections")

    async def _connections(self) -> set[str]:
        return set(await asyncio.to_thread(self.server.connections, self.url))

    async def until(self, condition: Condition, what: str, within: float = 20.0) -> None:
        deadline = self.clock.monotonic() + within
        while not await holds(condition):
            assert self.clock.monotonic() < deadline, f"{what}: not within {within} s"
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        for bus in self._buses:
            await bus.close()
