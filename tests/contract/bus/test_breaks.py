"""Nothing confirmed is lost, and everything comes back by itself, whatever breaks in between."""

import asyncio

import pytest

from attune.bus.topology import StageQueue, broadcast_queue, worker_queue
from attune.kernel.errors import BusUnavailable
from attune.kernel.ids import WorkerId
from attune.kernel.messages import MessageType
from tests.contract.bus.messages import Gate, Inbox, enforcement, hand_off, rule_updated
from tests.contract.bus.worlds import World

ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value


async def test_f31_consumers_come_back_after_the_broker_restarts_and_find_what_was_kept(
    bus_world: World,
) -> None:
    publisher = await bus_world.make_bus()
    reader = await bus_world.make_bus()
    inbox, orders = Inbox(), Inbox()
    await reader.declare(worker_queue(WorkerId(1)))
    await reader.consume(worker_queue(WorkerId(1)).name, orders)
    await publisher.publish(enforcement(1))

    await bus_world.stop()
    await bus_world.until(lambda: not reader.connected, "the loss is noticed")
    await bus_world.start()

    await reader.consume(ENFORCEMENTS, inbox)
    await publisher.publish(enforcement(2))
    await publisher.publish(hand_off(WorkerId(1)), to=worker_queue(WorkerId(1)).name)
    await bus_world.until(lambda: inbox.has(2) and orders.has(1), "all arrive", 60)
    assert sorted(inbox.numbers) == [1, 2]


async def test_a_publish_during_an_outage_succeeds_when_the_broker_returns(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus(publish_timeout=120.0)
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    await bus_world.stop()
    await bus_world.until(lambda: not bus.connected, "the loss is noticed")
    publishing = asyncio.create_task(bus.publish(enforcement(1), enforcement(2)))
    await asyncio.sleep(0)
    assert not publishing.done()
    await bus_world.start()
    await bus_world.until(publishing.done, "the publish returns", 60)
    await publishing
    await bus_world.until(lambda: inbox.has(2), "both arrive")
    assert sorted(set(inbox.numbers)) == [1, 2]


async def test_a_publish_raises_when_the_broker_stays_away_longer_than_its_time(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus(publish_timeout=0.5)
    await bus_world.stop()
    await bus_world.until(lambda: not bus.connected, "the loss is noticed")
    publishing = asyncio.create_task(bus.publish(enforcement(1)))
    await bus_world.until(publishing.done, "the publish gives up")
    with pytest.raises(BusUnavailable) as caught:
        await publishing
    assert caught.value.retriable


async def test_f31_consumers_come_back_after_every_lost_connection(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    for number in range(3):
        await bus_world.drop_connections()
        await bus.publish(enforcement(number))
        await bus_world.until(lambda n=number: n in inbox.numbers, "the message arrives")  # type: ignore[misc]


async def test_a_message_in_hand_when_the_connection_breaks_is_delivered_again(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    gate, inbox = Gate(), Inbox()
    subscription = await bus.consume(ENFORCEMENTS, gate)
    await bus.publish(enforcement(1))
    await bus_world.until(lambda: gate.running == 1, "the handler has it")
    await bus_world.drop_connections()
    await bus_world.until(lambda: gate.running == 2, "it is delivered again")
    gate.open()
    await bus_world.until(lambda: gate.finished == 2, "both deliveries end")
    await subscription.cancel()
    await bus.consume(ENFORCEMENTS, inbox)
    await bus.publish(enforcement(2))
    await bus_world.until(lambda: inbox.has(1), "the next arrives")
    assert inbox.numbers == [2], "the answer on the lost connection harmed nothing"


async def test_a_broadcast_queue_is_there_again_after_a_break(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    news = broadcast_queue("process-1", MessageType.RULE_UPDATED)
    inbox = Inbox()
    await bus.declare(news)
    await bus.consume(news.name, inbox)
    await bus_world.drop_connections()
    await bus_world.until(lambda: bus.connected, "it is connected again")

    async def heard() -> bool:
        await bus.publish(rule_updated(1))
        return inbox.has(1)

    await bus_world.until(heard, "the news is heard again")


async def test_a_consumer_added_while_the_broker_is_away_starts_when_it_returns(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.publish(enforcement(1))
    await bus_world.stop()
    await bus_world.until(lambda: not bus.connected, "the loss is noticed")
    await bus.consume(ENFORCEMENTS, inbox)
    await bus_world.start()
    await bus_world.until(lambda: inbox.has(1), "the kept message arrives", 60)


async def test_a_consumer_cancelled_between_two_connections_does_not_return(
    bus_world: World,
) -> None:
    bus, other = await bus_world.make_bus(), await bus_world.make_bus()
    gone, inbox = Inbox(), Inbox()
    subscription = await bus.consume(ENFORCEMENTS, gone)
    await bus_world.drop_connections()
    await subscription.cancel()
    await other.consume(ENFORCEMENTS, inbox)
    await other.publish(*(enforcement(number) for number in range(20)))
    await bus_world.until(lambda: inbox.has(20), "the other consumer gets everything")
    assert gone.envelopes == []


async def test_a_queue_deleted_under_its_consumer_is_made_anew(bus_world: World) -> None:
    reader, other = await bus_world.make_bus(), await bus_world.make_bus()
    queue = worker_queue(WorkerId(4))
    inbox = Inbox()
    await reader.declare(queue)
    await reader.consume(queue.name, inbox)
    await other.delete(queue.name)

    async def served() -> bool:
        await other.publish(hand_off(WorkerId(4)), to=queue.name)
        return inbox.has(1)

    await bus_world.until(served, "the consumer is served again")
