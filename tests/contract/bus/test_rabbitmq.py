"""What only a real broker and a real network can do to the bus."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import aiormq
import pytest
import uvloop
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic
from pamqp.common import FieldTable

from attune.bus.amqp.consumer import AmqpConsumer
from attune.bus.amqp.session import Session
from attune.bus.outcome import Reason
from attune.bus.port import QueueMismatch
from attune.bus.rabbitmq import RabbitBus
from attune.bus.topology import StageQueue, standard_topology, worker_queue
from attune.kernel.clock import SystemClock
from attune.kernel.envelope import encode
from attune.kernel.errors import BusUnavailable, InvalidInput
from attune.kernel.ids import WorkerId
from harness.proxy import FaultProxy
from tests.contract.bus.messages import Inbox, Letters, enforcement, hand_off
from tests.contract.bus.worlds import RETRY, TOPOLOGY, RabbitWorld

ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value


def bus_at(url: str) -> RabbitBus:
    return RabbitBus(
        url, TOPOLOGY, clock=SystemClock(), jitter=random.Random(7), connect_timeout=2.0
    )


async def test_every_publish_that_returned_is_delivered_although_the_broker_is_killed(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus(publish_timeout=60.0)
    confirmed: list[int] = []
    stop = asyncio.Event()

    async def publish(start: int) -> None:
        number = start
        while not stop.is_set():
            await bus.publish(enforcement(number), enforcement(number + 1))
            confirmed.extend((number, number + 1))
            number += 100

    publishers = [asyncio.create_task(publish(start)) for start in range(0, 20, 2)]
    await rabbit_world.until(lambda: len(confirmed) > 200, "messages flow")
    await asyncio.to_thread(rabbit_world.server.kill)
    at_kill = len(confirmed)
    await rabbit_world.start()
    await rabbit_world.until(lambda: len(confirmed) > at_kill + 200, "messages flow again", 60)
    stop.set()
    await asyncio.gather(*publishers)

    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox, prefetch=100)
    await rabbit_world.until(lambda: set(confirmed) <= set(inbox.numbers), "none is missing", 60)


async def test_f31_consumers_come_back_after_the_broker_was_killed(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus(publish_timeout=60.0)
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    await asyncio.to_thread(rabbit_world.server.kill)
    await rabbit_world.start()
    await bus.publish(enforcement(1))
    await rabbit_world.until(lambda: inbox.has(1), "the message arrives", 60)


async def test_a_bus_that_is_closed_while_its_consumers_return_ends_soon(
    rabbitmq_url: str, proxy_to: Callable[[str], FaultProxy]
) -> None:
    """The first consumer that is back gets its letter while the others are still on their way."""
    proxy = proxy_to(rabbitmq_url)
    publisher = bus_at(rabbitmq_url)
    await publisher.start()
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.04):
        bus = bus_at(proxy.url_for(rabbitmq_url))
        await bus.start()
        letters = Letters()
        subscription = await bus.consume_dead_letters(letters)
        await asyncio.to_thread(proxy.cut)
        await publisher.publish(enforcement(1), to="nowhere")
        await asyncio.to_thread(proxy.heal)
        async with asyncio.timeout(20):
            while not letters.letters:
                await asyncio.sleep(0.001)
            await asyncio.sleep(delay)
        async with asyncio.timeout(15):
            await subscription.cancel()
            await bus.close()
    await publisher.close()


def test_what_is_posted_in_any_moment_of_a_break_arrives(
    rabbitmq_url: str, proxy_to: Callable[[str], FaultProxy]
) -> None:
    """On the loop of our processes, whose streams raise as soon as they are closed."""
    proxy = proxy_to(rabbitmq_url)

    async def post_through_breaks() -> None:
        bus, inbox = bus_at(proxy.url_for(rabbitmq_url)), Inbox()
        await bus.start()
        await bus.consume(ENFORCEMENTS, inbox)
        posted: list[Awaitable[None]] = []
        for _ in range(10):
            cutting = asyncio.create_task(asyncio.to_thread(proxy.cut))
            while bus.connected or not cutting.done():
                posted.append(bus.post((None, enforcement(len(posted)))))
                await asyncio.sleep(0)
            await asyncio.to_thread(proxy.heal)
            await asyncio.gather(*posted)
        async with asyncio.timeout(20):
            while len(set(inbox.numbers)) < len(posted):
                await asyncio.sleep(0.01)
        await bus.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(post_through_breaks())


async def test_a_consumer_that_leaves_while_a_session_is_built_is_no_loss(
    rabbitmq_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[Session] = []
    first_is_back, others_may_come = asyncio.Event(), asyncio.Event()
    consume = Session.consume

    async def one_by_one(session: Session, consumer: AmqpConsumer) -> None:
        await consume(session, consumer)
        sessions.append(session)
        first_is_back.set()
        await others_may_come.wait()

    monkeypatch.setattr(Session, "consume", one_by_one)
    bus = bus_at(rabbitmq_url)
    leaving = await bus.consume(ENFORCEMENTS, Inbox())
    await bus.consume(StageQueue.EVENT_CREATED, Inbox())
    starting = asyncio.create_task(bus.start())
    await first_is_back.wait()
    await leaving.cancel()
    others_may_come.set()
    await starting
    assert not sessions[0].lost.done()
    await bus.close()


async def test_a_network_that_swallows_everything_is_noticed_and_left_behind(
    rabbit_world: RabbitWorld, proxy_to: Callable[[str], FaultProxy]
) -> None:
    proxy = proxy_to(rabbit_world.url)
    url = proxy.url_for(rabbit_world.url)
    bus = await rabbit_world.make_bus(url=url, heartbeat=1, publish_timeout=60.0)
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    await asyncio.to_thread(proxy.stall)
    publishing = asyncio.create_task(bus.publish(enforcement(1)))
    await rabbit_world.until(lambda: not bus.connected, "the silence is noticed", 30)
    assert not publishing.done()
    await asyncio.to_thread(proxy.heal)
    await rabbit_world.until(publishing.done, "the publish is confirmed", 60)
    await publishing
    await rabbit_world.until(lambda: inbox.has(1), "the message arrives", 30)


async def test_a_cut_network_is_left_behind(
    rabbit_world: RabbitWorld, proxy_to: Callable[[str], FaultProxy]
) -> None:
    proxy = proxy_to(rabbit_world.url)
    bus = await rabbit_world.make_bus(url=proxy.url_for(rabbit_world.url), publish_timeout=60.0)
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    for number in range(3):
        await asyncio.to_thread(proxy.cut)
        await rabbit_world.until(lambda: not bus.connected, "the cut is noticed")
        await asyncio.to_thread(proxy.heal)
        await bus.publish(enforcement(number))
        await rabbit_world.until(lambda n=number: n in inbox.numbers, "the message arrives")  # type: ignore[misc]


async def test_a_stalled_broker_does_not_keep_the_bus_from_closing(
    rabbit_world: RabbitWorld, proxy_to: Callable[[str], FaultProxy]
) -> None:
    proxy = proxy_to(rabbit_world.url)
    bus = await rabbit_world.make_bus(url=proxy.url_for(rabbit_world.url))
    await bus.consume(ENFORCEMENTS, Inbox())
    await asyncio.to_thread(proxy.stall)
    closing = asyncio.create_task(bus.close())
    await rabbit_world.until(closing.done, "the bus closes", 20)


async def test_f30_what_a_foreign_consumer_rejects_reaches_the_dead_letter_queue_of_every_queue(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus()
    worker = worker_queue(WorkerId(7))
    await bus.declare(worker)
    names = [*(stage.value for stage in StageQueue), worker.name]
    letters = Letters()
    await bus.consume_dead_letters(letters)
    for name in names:
        await bus.publish(enforcement(1), to=name)
    async with aiormq.connect(rabbit_world.url) as connection:
        channel = await connection.channel()

        async def reject(message: DeliveredMessage) -> None:
            await channel.basic_reject(message.delivery_tag or 0, requeue=False)

        for name in names:
            await channel.basic_consume(name, reject)
        await rabbit_world.until(lambda: letters.has(len(names)), "all are dead letters")
    assert sorted(letter.queue for letter in letters.letters) == sorted(names)
    assert {letter.reason for letter in letters.letters} == {Reason.REJECTED}


async def test_a_worker_queue_has_the_arguments_of_the_specification_and_no_others(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus()
    await bus.declare(worker_queue(WorkerId(7)))
    async with aiormq.connect(rabbit_world.url) as connection:
        channel = await connection.channel()
        arguments: FieldTable = {
            "x-message-ttl": 300_000,
            "x-dead-letter-exchange": "attune.executions.dlx",
        }
        declared = await channel.queue_declare(
            "attune.execution.worker.7", durable=True, arguments=arguments
        )
    assert declared.queue == "attune.execution.worker.7"


async def test_a_foreign_order_on_the_default_exchange_dies_into_the_worker_dead_letter_queue(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus()
    queue = worker_queue(WorkerId(7), ttl_seconds=0.2)
    letters = Letters()
    await bus.declare(queue)
    await bus.consume_dead_letters(letters)
    await rabbit_world.publish_raw("", queue.name, encode(hand_off(WorkerId(7))))
    await rabbit_world.until(lambda: letters.has(1), "the order expires")
    assert (letters.letters[0].queue, letters.letters[0].reason) == (queue.name, Reason.EXPIRED)


async def test_messages_are_persistent_json_with_their_id_type_and_time(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus()
    envelope = enforcement(1)
    await bus.publish(envelope)
    async with aiormq.connect(rabbit_world.url) as connection:
        channel = await connection.channel()
        message = await channel.basic_get(ENFORCEMENTS, no_ack=True)
    properties: Basic.Properties = message.header.properties
    assert properties.delivery_mode == 2
    assert properties.content_type == "application/json"
    assert properties.message_id == str(envelope.message_id)
    assert properties.message_type == "enforcement.created"
    assert properties.timestamp == envelope.timestamp.replace(microsecond=0)
    assert message.body == encode(envelope)


async def test_a_queue_with_other_arguments_is_named_together_with_the_remedy(
    rabbit_world: RabbitWorld,
) -> None:
    await rabbit_world.make_bus()
    other = standard_topology(message_ttl=1.0, retry=RETRY)
    with pytest.raises(QueueMismatch) as caught:
        await rabbit_world.make_bus(other)
    assert StageQueue.EVENT_CREATED.value in caught.value.message
    assert "delete" in caught.value.message
    assert not caught.value.retriable


async def test_a_worker_queue_with_other_arguments_is_named_and_the_bus_lives_on(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus()
    await bus.declare(worker_queue(WorkerId(7)))
    with pytest.raises(QueueMismatch, match=r"attune\.execution\.worker\.7"):
        await bus.declare(worker_queue(WorkerId(7), ttl_seconds=5))
    await rabbit_world.drop_connections()
    await bus.publish(enforcement(1))
    await rabbit_world.until(lambda: bus.connected, "the refused queue does not spoil a reconnect")


async def test_a_name_that_amqp_cannot_carry_is_refused_and_the_bus_lives_on(
    rabbit_world: RabbitWorld,
) -> None:
    bus = await rabbit_world.make_bus()
    with pytest.raises(InvalidInput):
        await bus.publish(enforcement(1), to="x" * 300)
    await bus.publish(enforcement(2))


async def test_a_wrong_password_is_told_without_the_password(rabbit_world: RabbitWorld) -> None:
    url = rabbit_world.url.replace("guest:guest@", "guest:s3cr3t-pw@")
    with pytest.raises(BusUnavailable, match="refused the login of user 'guest'") as caught:
        await bus_at(url).start()
    assert "s3cr3t-pw" not in str(caught.value)


async def test_a_missing_virtual_host_is_named(rabbit_world: RabbitWorld) -> None:
    url = rabbit_world.url.rsplit("/", 1)[0] + "/nowhere"
    with pytest.raises(BusUnavailable, match="no virtual host 'nowhere'"):
        await bus_at(url).start()


async def test_an_unreachable_broker_is_told_at_the_start() -> None:
    with pytest.raises(BusUnavailable, match="cannot be reached"):
        await bus_at("amqp://guest:guest@127.0.0.1:1/").start()
