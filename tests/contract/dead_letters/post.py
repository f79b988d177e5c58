"""A broker on which messages can be made to die of anything, and the database in which they are kept."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiormq

from attune.bus.dead_letters import X_DEATH
from attune.bus.memory_queue import Message
from attune.bus.outcome import Reason
from attune.bus.port import Bus
from attune.bus.topology import Queue, StageQueue, Topology, standard_topology, worker_queue
from attune.dead_letters.keeper import DeadLetterKeeper, Then
from attune.dead_letters.model import LetterFilters, LetterSummary
from attune.dead_letters.queries import list_letters
from attune.dead_letters.replay import Replayer
from attune.kernel.envelope import Envelope
from attune.kernel.errors import AttuneError
from attune.kernel.ids import WorkerId
from attune.store.database import Database
from harness.rabbitmq import _path
from tests.contract.bus.messages import number_of
from tests.contract.bus.worlds import RETRY, TOPOLOGY, MemoryWorld, RabbitWorld

WORKER = worker_queue(WorkerId(7))
MORTAL = standard_topology(message_ttl=1.5, retry=RETRY)
MORTAL_WORKER = worker_queue(WorkerId(7), ttl_seconds=1.5)
DEATHS = {Reason.REJECTED: "rejected", Reason.OVERFLOW: "maxlen"}


def queues_of(topology: Topology, worker: Queue) -> list[Queue]:
    """Those in which work waits: one of each stage, and that of a worker."""
    return [queue for queue in topology.queues if queue.name in set(StageQueue)] + [worker]


@dataclass
class Post:
    world: MemoryWorld | RabbitWorld
    database: Database

    async def make_bus(self, topology: Topology = TOPOLOGY, **options: Any) -> Bus:
        return await self.world.make_bus(topology, **options)

    async def start_keeper(self, bus: Bus, then: Then | None = None) -> DeadLetterKeeper:
        keeper = DeadLetterKeeper(bus, self.database, self.world.clock, then)
        await keeper.start()
        return keeper

    def replayer(self, bus: Bus) -> Replayer:
        return Replayer(bus, self.database, self.world.clock)

    async def letters(self, **filters: Any) -> list[LetterSummary]:
        """Newest first."""
        return await self.database.read(list_letters, LetterFilters(**filters), 1000)

    async def kept(self, count: int, **filters: Any) -> list[LetterSummary]:
        async def there() -> bool:
            return len(await self.letters(**filters)) >= count

        await self.world.until(there, f"{count} letters are kept", 60.0)
        return await self.letters(**filters)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """The database takes real time also where the broker's time is ours."""

        async def met() -> bool:
            await asyncio.sleep(0.001)
            return condition()

        await self.world.until(met, what, 60.0)

    async def bury(self, reason: Reason, queue: Queue, body: bytes, rest: bytes) -> None:
        """The broker buries a message that waits in a queue; of an overflow the `rest` stays behind."""
        if isinstance(self.world, MemoryWorld):
            death = {"queue": queue.name, "reason": DEATHS[reason], "time": self.world.clock.now()}
            route = queue.burial
            message = Message(None, body, {X_DEATH: [death]})
            self.world.broker.publish(route.exchange, route.routing_key, message)
        elif reason is Reason.REJECTED:
            await self.world.publish_raw("", queue.name, body)
            await _reject(self.world.url, queue.name)
        else:
            await self.world.publish_raw("", queue.name, body)
            await self.world.publish_raw("", queue.name, rest)
            await asyncio.to_thread(_limit, self.world, queue.name)


async def _reject(url: str, queue: str) -> None:
    """As a foreign client that wants nothing of it."""
    async with aiormq.connect(url) as connection:
        channel = await connection.channel()
        got = await channel.basic_get(queue)
        assert got.delivery_tag is not None
        await channel.basic_reject(got.delivery_tag, requeue=False)
        await channel.close()


def _limit(world: RabbitWorld, queue: str) -> None:
    """As an administrator of the broker who lets one message wait in it."""
    policy = {"pattern": f"^{queue}$", "definition": {"max-length": 1}, "apply-to": "queues"}
    world.server._call("PUT", f"policies/{_path(world.url)}/{queue}", policy)


class Stage:
    """A handler that fails with an error until it is mended, and then remembers what came."""

    def __init__(self, failure: AttuneError | None = None) -> None:
        self.failure = failure
        self.taken: list[Envelope] = []

    async def __call__(self, envelope: Envelope) -> None:
        if self.failure is not None:
            raise self.failure
        self.taken.append(envelope)

    def numbers(self) -> list[int]:
        return [number_of(envelope) for envelope in self.taken]
