"""Starting, stopping, and who hears what."""

import asyncio

import pytest

from attune.bus.topology import StageQueue, broadcast_queue
from attune.kernel.errors import BusUnavailable, NotFound
from attune.kernel.messages import MessageType
from tests.contract.bus.messages import Gate, Inbox, enforcement, rule_updated
from tests.contract.bus.worlds import World

ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value


async def test_cancel_takes_nothing_more_and_waits_for_what_runs(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    gate, inbox = Gate(), Inbox()
    subscription = await bus.consume(ENFORCEMENTS, gate, prefetch=1)
    await bus.publish(enforcement(1), enforcement(2))
    await bus_world.until(lambda: gate.running == 1, "the first is being handled")
    cancelling = asyncio.create_task(subscription.cancel())
    await asyncio.sleep(0)
    assert not cancelling.done()
    gate.open()
    await bus_world.until(cancelling.done, "the cancel returns")
    assert gate.finished == 1
    await subscription.cancel()
    await bus.consume(ENFORCEMENTS, inbox)
    await bus_world.until(lambda: inbox.has(1), "the other message was left in its queue")
    assert inbox.numbers == [2]


async def test_close_lets_running_handlers_finish_and_may_be_called_twice(
    bus_world: World,
) -> None:
    bus, other = await bus_world.make_bus(), await bus_world.make_bus()
    gate = Gate()
    await bus.consume(ENFORCEMENTS, gate)
    await bus.publish(enforcement(1))
    await bus_world.until(lambda: gate.running == 1, "the handler runs")
    closing = asyncio.create_task(bus.close())
    await asyncio.sleep(0)
    assert not closing.done()
    gate.open()
    await bus_world.until(closing.done, "the bus closes")
    await bus.close()
    assert gate.finished == 1
    assert not bus.connected
    assert await other.depth(ENFORCEMENTS) == 0


async def test_close_gives_up_on_a_handler_that_does_not_end_and_its_message_is_kept(
    bus_world: World,
) -> None:
    bus, other = await bus_world.make_bus(close_timeout=0.2), await bus_world.make_bus()
    gate = Gate()
    await bus.consume(ENFORCEMENTS, gate)
    await bus.publish(enforcement(1))
    await bus_world.until(lambda: gate.running == 1, "the handler runs")
    closing = asyncio.create_task(bus.close())
    await bus_world.until(closing.done, "the bus closes")

    async def kept() -> bool:
        return await other.depth(ENFORCEMENTS) == 1

    await bus_world.until(kept, "the message is back in its queue")
    assert (gate.running, gate.finished) == (0, 0)


async def test_a_closed_bus_refuses_to_publish(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    await bus.close()
    with pytest.raises(BusUnavailable, match="closed"):
        await bus.publish(enforcement(1))


async def test_a_broadcast_is_heard_by_every_process(bus_world: World) -> None:
    inboxes = [Inbox(), Inbox()]
    for number, inbox in enumerate(inboxes):
        bus = await bus_world.make_bus()
        news = broadcast_queue(f"process-{number}", MessageType.RULE_UPDATED)
        await bus.declare(news)
        await bus.consume(news.name, inbox)
    publisher = await bus_world.make_bus()
    envelope = rule_updated(1)
    await publisher.publish(envelope)
    await bus_world.until(lambda: all(inbox.has(1) for inbox in inboxes), "both hear it")
    assert [inbox.envelopes for inbox in inboxes] == [[envelope], [envelope]]


async def test_a_broadcast_queue_belongs_to_its_bus_and_goes_with_it(bus_world: World) -> None:
    owner, other = await bus_world.make_bus(), await bus_world.make_bus()
    news = broadcast_queue("process-1", MessageType.RULE_UPDATED)
    await owner.declare(news)
    with pytest.raises(NotFound):
        await other.consume(news.name, Inbox())
    await owner.close()
    await other.publish(rule_updated(1))
    with pytest.raises(NotFound):
        await other.depth(news.name)
