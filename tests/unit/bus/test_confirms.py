"""A publish is done when the last of its messages is confirmed, in whatever portions."""

import asyncio

import pytest

from attune.bus.amqp.confirms import Batch, Confirms
from attune.bus.amqp.frames import Outgoing, from_envelope
from attune.bus.amqp.outbox import Outbox
from attune.bus.routing import Route
from attune.kernel.errors import BusUnavailable
from attune.simulation.clock import ManualClock
from tests.contract.bus.messages import enforcement

ROUTE = Route("attune.executions", "enforcement.created")


def outgoing(count: int) -> list[Outgoing]:
    return [from_envelope(enforcement(number), ROUTE) for number in range(count)]


def batch(count: int) -> Batch:
    return Batch(outgoing(count), 0.0, asyncio.get_running_loop().create_future())


def send(confirms: Confirms, *batches: Batch) -> None:
    for each in batches:
        while not each.all_sent:
            each.send_one()
            confirms.expect(each)


async def test_one_frame_may_confirm_several_publishes_and_a_part_of_the_next() -> None:
    confirms = Confirms()
    first, second = batch(2), batch(2)
    send(confirms, first, second)
    confirms.settle(3, multiple=True, confirmed=True)
    assert first.done.done()
    assert not second.done.done()
    confirms.settle(4, multiple=False, confirmed=True)
    assert second.done.done()


async def test_confirmations_may_come_out_of_order_and_twice() -> None:
    confirms = Confirms()
    only = batch(3)
    send(confirms, only)
    confirms.settle(2, multiple=False, confirmed=True)
    confirms.settle(2, multiple=False, confirmed=True)
    confirms.settle(3, multiple=False, confirmed=True)
    assert not only.done.done()
    confirms.settle(1, multiple=True, confirmed=True)
    assert only.done.done()


async def test_a_refusal_fails_the_publish() -> None:
    confirms = Confirms()
    only = batch(1)
    send(confirms, only)
    confirms.settle(1, multiple=False, confirmed=False)
    with pytest.raises(BusUnavailable):
        await only.done


async def test_a_lost_channel_confirms_nothing_any_more() -> None:
    confirms = Confirms()
    only = batch(2)
    send(confirms, only)
    confirms.settle(1, multiple=False, confirmed=True)
    confirms.retire()
    only.restart()
    confirms.settle(2, multiple=True, confirmed=True)
    assert only.unconfirmed == 2


async def test_what_nobody_confirms_fails_after_its_time_with_the_reason_and_is_forgotten() -> None:
    clock = ManualClock()
    outbox = Outbox(clock, timeout=30.0)
    outbox.trouble = "The broker is on holiday."
    sending = asyncio.create_task(outbox.send(outgoing(2)))
    await clock.advance(29.9)
    assert not sending.done()
    await clock.advance(0.1)
    with pytest.raises(BusUnavailable, match="2 of 2 messages within 30 seconds: The broker is on"):
        await sending
    await clock.settle()
    assert clock.next_due() is None


async def test_closing_fails_what_is_open_and_refuses_more() -> None:
    outbox = Outbox(ManualClock(), timeout=30.0)
    sending = asyncio.create_task(outbox.send(outgoing(1)))
    await asyncio.sleep(0)
    outbox.close("The bus is closed.")
    for attempt in (sending, outbox.send(outgoing(1))):
        with pytest.raises(BusUnavailable, match="closed"):
            await attempt
