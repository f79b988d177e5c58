"""Messages get from a publisher to the right handler, whole."""

import msgspec
import pytest

from attune.bus.topology import UNROUTED, Queue, StageQueue, worker_queue
from attune.kernel.envelope import encode
from attune.kernel.errors import InvalidInput, NotFound
from attune.kernel.ids import EnforcementId, WorkerId
from attune.kernel.messages import EnforcementCreated, MessageType
from tests.contract.bus.messages import (
    STAMP,
    WORK,
    Gate,
    Inbox,
    Letters,
    enforcement,
    hand_off,
    rule_updated,
)
from tests.contract.bus.worlds import World

ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value


async def test_a_handler_gets_the_envelope_that_was_published(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    envelope = enforcement(1)
    await bus.publish(envelope)
    await bus_world.until(lambda: inbox.has(1), "the message arrives")
    assert inbox.envelopes == [envelope]


async def test_f32_the_first_message_on_a_fresh_broker_is_kept_before_any_consumer_exists(
    bus_world: World,
) -> None:
    publisher = await bus_world.make_bus()
    await publisher.publish(enforcement(1))
    await publisher.close()
    reader = await bus_world.make_bus()
    inbox = Inbox()
    await reader.consume(ENFORCEMENTS, inbox)
    await bus_world.until(lambda: inbox.has(1), "the first message arrives")
    assert inbox.numbers == [1]


async def test_every_type_of_work_has_a_stage_that_takes_it(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inboxes = {stage: Inbox() for stage in StageQueue}
    for stage, inbox in inboxes.items():
        await bus.consume(stage.value, inbox)
    await bus.publish(*(STAMP.envelope(kind, item) for kind, item in WORK.items()))
    await bus_world.until(
        lambda: all(inbox.has(1) for inbox in inboxes.values()), "each stage has its message"
    )
    taken = [inbox.envelopes[0].message_type for inbox in inboxes.values()]
    assert sorted(taken) == sorted(WORK)


async def test_a_message_may_carry_many_items(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    items = [EnforcementCreated(enforcement_id=EnforcementId(n)) for n in range(500)]
    await bus.publish(STAMP.envelope(MessageType.ENFORCEMENT_CREATED, *items))
    await bus_world.until(lambda: inbox.has(1), "the message arrives")
    assert list(inbox.envelopes[0].items) == items


async def test_a_body_larger_than_a_frame_arrives_whole(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    envelope = msgspec.structs.replace(enforcement(1), source="x" * 500_000)
    await bus.publish(envelope)
    await bus_world.until(lambda: inbox.has(1), "the message arrives")
    assert inbox.envelopes == [envelope]


async def test_a_thousand_envelopes_in_one_publish_arrive_in_their_order(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.publish(*(enforcement(number) for number in range(1000)))
    await bus.consume(ENFORCEMENTS, inbox, prefetch=100)
    await bus_world.until(lambda: inbox.has(1000), "all arrive")
    assert inbox.numbers == list(range(1000))


async def test_publishing_nothing_is_fine(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    await bus.publish()


async def test_a_foreign_client_publishes_our_envelope_and_is_served(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    envelope = enforcement(5)
    await bus_world.publish_raw("attune.executions", "enforcement.created", encode(envelope))
    await bus_world.until(lambda: inbox.has(1), "the foreign message arrives")
    assert inbox.envelopes == [envelope]


async def test_an_order_reaches_the_queue_of_its_worker_alone(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    first, second = Inbox(), Inbox()
    for worker, inbox in ((WorkerId(1), first), (WorkerId(2), second)):
        await bus.declare(worker_queue(worker))
        await bus.consume(worker_queue(worker).name, inbox)
    await bus.publish(hand_off(WorkerId(2)), to=worker_queue(WorkerId(2)).name)
    await bus_world.until(lambda: second.has(1), "the worker has its order")
    assert first.envelopes == []


async def test_any_declared_queue_takes_what_is_sent_to_its_name(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()
    await bus.declare(Queue(name="mine"))
    await bus.consume("mine", inbox)
    await bus.publish(enforcement(3), to="mine")
    await bus_world.until(lambda: inbox.has(1), "the message arrives")
    assert inbox.numbers == [3]


async def test_an_order_without_a_queue_is_refused(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    with pytest.raises(InvalidInput, match="name its queue"):
        await bus.publish(hand_off(WorkerId(1)))


async def test_no_more_than_prefetch_messages_are_out_at_once(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    gate = Gate()
    await bus.publish(*(enforcement(number) for number in range(10)))
    await bus.consume(ENFORCEMENTS, gate, prefetch=3)

    async def seven_wait() -> bool:
        return gate.running == 3 and await bus.depth(ENFORCEMENTS) == 7

    await bus_world.until(seven_wait, "three run and seven wait")
    gate.open()
    await bus_world.until(lambda: gate.finished == 10, "all are handled")
    assert gate.most_at_once == 3


async def test_two_consumers_of_a_queue_share_its_messages(bus_world: World) -> None:
    inboxes = [Inbox(), Inbox()]
    for inbox in inboxes:
        bus = await bus_world.make_bus()
        await bus.consume(ENFORCEMENTS, inbox)
    await bus.publish(*(enforcement(number) for number in range(40)))
    await bus_world.until(
        lambda: sum(len(inbox.envelopes) for inbox in inboxes) == 40, "all are taken"
    )
    assert sorted(inboxes[0].numbers + inboxes[1].numbers) == list(range(40))
    assert all(inbox.envelopes for inbox in inboxes)


async def test_what_no_queue_takes_becomes_a_dead_letter_and_does_not_vanish(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus_world.publish_raw("attune.executions", "no.such.key", b"{}")
    await bus.publish(hand_off(WorkerId(99)), to=worker_queue(WorkerId(99)).name)
    await bus_world.until(lambda: letters.has(2), "both are dead letters")
    assert {letter.reason for letter in letters.letters} == {"unrouted"}


async def test_a_notice_that_nobody_wants_to_hear_is_dropped(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    await bus.publish(rule_updated(1))
    await bus.publish(enforcement(1))

    async def enforcement_waits() -> bool:
        return await bus.depth(ENFORCEMENTS) == 1

    await bus_world.until(enforcement_waits, "the later message has arrived")
    assert await bus.depth(UNROUTED) == 0


async def test_consuming_or_measuring_an_unknown_queue_says_so(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    with pytest.raises(NotFound, match=r"attune\.nowhere"):
        await bus.consume("attune.nowhere", Inbox())
    with pytest.raises(NotFound, match=r"attune\.nowhere"):
        await bus.depth("attune.nowhere")


async def test_a_deleted_queue_is_gone_and_deleting_it_twice_is_fine(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    queue = worker_queue(WorkerId(3))
    await bus.declare(queue)
    assert await bus.depth(queue.name) == 0
    await bus.delete(queue.name)
    await bus.delete(queue.name)
    with pytest.raises(NotFound):
        await bus.depth(queue.name)
