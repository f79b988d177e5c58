"""Bytes for one queue: as they are, to that queue alone, or a clear no."""

import asyncio

import pytest

from attune.bus.outcome import Reason
from attune.bus.topology import (
    WORKER_DEAD_LETTERS,
    StageQueue,
    broadcast_queue,
    worker_queue,
)
from attune.kernel.envelope import encode
from attune.kernel.errors import BusUnavailable, NotFound
from attune.kernel.ids import WorkerId
from attune.kernel.messages import MessageType
from tests.contract.bus.messages import Inbox, Letters, enforcement, hand_off
from tests.contract.bus.worlds import World

EVENTS = StageQueue.EVENT_CREATED.value
ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value
WORKER = worker_queue(WorkerId(7), ttl_seconds=0.3)


async def test_bytes_reach_the_queue_that_is_named_in_their_order_and_no_other(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    envelopes = [enforcement(number) for number in range(3)]
    await bus.send_raw(EVENTS, *map(encode, envelopes))
    assert (await bus.depth(EVENTS), await bus.depth(ENFORCEMENTS)) == (3, 0)
    inbox = Inbox()
    await bus.consume(EVENTS, inbox, prefetch=1)
    await bus_world.until(lambda: inbox.has(3), "all arrive")
    assert inbox.envelopes == envelopes


@pytest.mark.parametrize("body", [b"", b"\x00\xff no text", b"{}", b"x" * 300_000])
async def test_whatever_the_bytes_are_they_arrive_unchanged(bus_world: World, body: bytes) -> None:
    bus = await bus_world.make_bus()
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus.consume(EVENTS, Inbox())
    await bus.send_raw(EVENTS, body)
    await bus_world.until(lambda: letters.has(1), "they are refused as no message")
    [letter] = letters.letters
    assert (letter.body, letter.queue, letter.reason) == (body, EVENTS, Reason.BAD_MESSAGE)


async def test_a_queue_of_another_bus_can_be_sent_to(bus_world: World) -> None:
    worker, other = await bus_world.make_bus(), await bus_world.make_bus()
    await worker.declare(WORKER)
    inbox = Inbox()
    await worker.consume(WORKER.name, inbox)
    order = hand_off(WorkerId(7))
    await other.send_raw(WORKER.name, encode(order))
    await bus_world.until(lambda: inbox.has(1), "the worker has it")
    assert inbox.envelopes == [order]


async def test_what_nobody_takes_in_time_dies_in_that_queue(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    await bus.declare(WORKER)
    letters = Letters()
    await bus.consume_dead_letters(letters, queue=WORKER_DEAD_LETTERS)
    await bus.send_raw(WORKER.name, b"late")
    await bus_world.until(lambda: letters.has(1), "it expires")
    [letter] = letters.letters
    assert (letter.queue, letter.reason, letter.body) == (WORKER.name, Reason.EXPIRED, b"late")


async def test_a_queue_that_does_not_exist_is_told_and_nothing_is_sent(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    letters = Letters()
    await bus.consume_dead_letters(letters)
    for name in (WORKER.name, "", "ü" * 200):
        with pytest.raises(NotFound):
            await bus.send_raw(name, b"{}")
    await bus.declare(WORKER)
    await bus.delete(WORKER.name)
    with pytest.raises(NotFound, match=WORKER.name):
        await bus.send_raw(WORKER.name, b"{}")
    await bus.consume(EVENTS, Inbox())
    await bus.send_raw(EVENTS, b"the next that dies")
    await bus_world.until(lambda: letters.has(1), "the next one is read")
    assert [letter.body for letter in letters.letters] == [b"the next that dies"]


async def test_the_queue_of_one_process_is_nobodys_address(bus_world: World) -> None:
    owner, other = await bus_world.make_bus(), await bus_world.make_bus()
    news = broadcast_queue("process-1", MessageType.RULE_UPDATED)
    await owner.declare(news)
    for bus in (owner, other):
        with pytest.raises(NotFound, match=news.name):
            await bus.send_raw(news.name, b"{}")


async def test_a_broker_that_stays_away_is_told_after_the_publish_time_out(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus(publish_timeout=0.5)
    await bus_world.stop()
    sending = asyncio.create_task(bus.send_raw(EVENTS, b"{}"))
    await bus_world.until(sending.done, "the sender is told")
    assert isinstance(sending.exception(), BusUnavailable)
