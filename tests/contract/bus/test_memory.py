"""What can be proved exactly where time is ours: moments, order, and idleness."""

import asyncio

from attune.bus.topology import StageQueue, standard_topology
from attune.kernel.errors import Unavailable
from tests.contract.bus.messages import Failing, Inbox, enforcement
from tests.contract.bus.worlds import RETRY, MemoryWorld

ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value


async def test_f29_retries_come_at_exactly_their_moments_and_never_in_between(
    memory_world: MemoryWorld,
) -> None:
    bus = await memory_world.make_bus()
    handler = Failing(Unavailable("away"), memory_world.clock)
    await bus.consume(ENFORCEMENTS, handler)
    await bus.publish(enforcement(1))
    await memory_world.manual.advance(3600)
    assert [round(moment, 6) for moment in handler.calls] == [0.0, 0.1, 0.3, 0.7, 1.1]


async def test_f29_without_passing_time_there_is_one_delivery_only(
    memory_world: MemoryWorld,
) -> None:
    bus = await memory_world.make_bus()
    handler = Failing(Unavailable("away"), memory_world.clock)
    await bus.consume(ENFORCEMENTS, handler)
    await bus.publish(enforcement(1))
    await memory_world.manual.settle()
    assert len(handler.calls) == 1


async def test_messages_expire_at_exactly_their_time_to_live(memory_world: MemoryWorld) -> None:
    bus = await memory_world.make_bus(standard_topology(message_ttl=10.0, retry=RETRY))
    await bus.publish(enforcement(1))
    await memory_world.manual.advance(9.9)
    assert await bus.depth(ENFORCEMENTS) == 1
    await memory_world.manual.advance(0.1)
    assert await bus.depth(ENFORCEMENTS) == 0
    assert await bus.depth(f"{ENFORCEMENTS}.dlq") == 1


async def test_an_idle_bus_has_neither_tasks_nor_timers(memory_world: MemoryWorld) -> None:
    before = asyncio.all_tasks()
    bus = await memory_world.make_bus()
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    await bus.publish(*(enforcement(number) for number in range(50)))
    await memory_world.until(lambda: inbox.has(50), "all arrive")
    await memory_world.manual.settle()
    assert asyncio.all_tasks() == before
    assert memory_world.manual.next_due() is None


async def test_unanswered_messages_return_to_the_front_in_their_order(
    memory_world: MemoryWorld,
) -> None:
    bus = await memory_world.make_bus()
    never = asyncio.Event()

    async def hold(envelope: object) -> None:
        await never.wait()

    await bus.consume(ENFORCEMENTS, hold, prefetch=3)
    await bus.publish(*(enforcement(number) for number in range(5)))
    await memory_world.manual.settle()
    other = await memory_world.make_bus()
    inbox = Inbox()
    closing = asyncio.create_task(bus.close())
    await memory_world.until(closing.done, "the bus closes")
    await other.consume(ENFORCEMENTS, inbox)
    await memory_world.until(lambda: inbox.has(5), "all arrive")
    assert inbox.numbers == [0, 1, 2, 3, 4]
