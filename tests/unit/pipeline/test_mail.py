"""A change of an execution reaches those who follow it at once; executors, who do nothing about it, hear of many together."""

import random

from attune.bus.announcer import COMPANY, LEISURE, Announcer
from attune.bus.memory import MemoryBus
from attune.bus.memory_broker import MemoryBroker
from attune.bus.topology import StageQueue, broadcast_queue, standard_topology
from attune.kernel.envelope import Envelope, Stamp
from attune.kernel.ids import ExecutionId, Ids
from attune.kernel.messages import ExecutionStatusChanged, MessageType, Payload
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.outbox import Mail
from attune.simulation.clock import ManualClock


def moves(*numbers: int) -> list[Payload]:
    status = ExecutionStatus.COMPLETED
    return [ExecutionStatusChanged(execution_id=ExecutionId(n), status=status) for n in numbers]


class Listener:
    """The executions that each message told of."""

    def __init__(self) -> None:
        self.heard: list[list[int]] = []

    async def __call__(self, envelope: Envelope) -> None:
        self.heard.append([item.execution_id for item in envelope.items])  # type: ignore[attr-defined]


class World:
    def __init__(self, *, acted_on: bool = False) -> None:
        self.clock = ManualClock()
        self.bus = MemoryBus(MemoryBroker(self.clock), standard_topology(), publish_timeout=5)
        stamp = Stamp("tests", self.clock, Ids(random.Random(1)))
        self.mail = Mail(Announcer(self.bus, self.clock), stamp, acted_on=acted_on)
        self.follower, self.executor = Listener(), Listener()

    async def listen(self) -> None:
        await self.bus.start()
        queue = broadcast_queue("a-follower", MessageType.EXECUTION_NEWS)
        await self.bus.declare(queue)
        await self.bus.consume(queue.name, self.follower)
        await self.bus.consume(StageQueue.EXECUTION_STATUS, self.executor)


async def test_who_follows_hears_at_once_and_executors_of_many_together() -> None:
    world = World()
    await world.listen()
    world.mail.moved(moves(1), may_wait=False)
    world.mail.moved(moves(2, 3), may_wait=False)
    await world.clock.settle()
    assert world.follower.heard == [[1], [2, 3]]
    assert world.executor.heard == []
    await world.clock.advance(LEISURE)
    assert world.executor.heard == [[1, 2, 3]]
    assert world.follower.heard == [[1], [2, 3]]
    await world.bus.close()


async def test_what_may_wait_reaches_followers_in_company() -> None:
    world = World()
    await world.listen()
    world.mail.moved(moves(1), may_wait=True)
    world.mail.moved(moves(2), may_wait=True)
    await world.clock.settle()
    assert world.follower.heard == []
    await world.clock.advance(COMPANY)
    assert world.follower.heard == [[1, 2]]
    await world.bus.close()


async def test_a_queue_outside_the_database_is_told_at_once() -> None:
    """There an executor has something to do about it."""
    world = World(acted_on=True)
    await world.listen()
    world.mail.moved(moves(1), may_wait=True)
    await world.clock.settle()
    assert world.executor.heard == world.follower.heard == [[1]]
    await world.bus.close()
