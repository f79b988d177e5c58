"""What becomes of a message whose handler fails, or that is no message at all."""

import asyncio

import msgspec
import pytest

from attune.bus.outcome import Reason
from attune.bus.topology import StageQueue, retry_exchange
from attune.kernel.envelope import Envelope, encode
from attune.kernel.errors import Contention, InvalidInput, Unavailable
from attune.kernel.messages import MessageType
from tests.contract.bus.messages import STAMP, Failing, Inbox, Letters, enforcement, number_of
from tests.contract.bus.worlds import RETRY, World

ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value

RETRIABLE = [
    Unavailable("away"),
    Contention("busy"),
    TimeoutError(),
    ConnectionResetError("reset"),
    OSError("disk"),
]


@pytest.mark.parametrize("error", RETRIABLE, ids=lambda error: type(error).__name__)
async def test_a_retriable_failure_is_delivered_again_and_counted(
    bus_world: World, error: Exception
) -> None:
    bus = await bus_world.make_bus()
    handler = Failing(error, bus_world.clock, times=1)
    await bus.consume(ENFORCEMENTS, handler)
    await bus.publish(enforcement(1))
    await bus_world.until(lambda: handler.called(2), "it is delivered again")
    assert handler.retry_counts == [0, 1]


async def test_f29_retries_come_after_growing_delays_up_to_the_ceiling_then_end_as_a_dead_letter(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    handler = Failing(Unavailable("The database is away."), bus_world.clock)
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus.consume(ENFORCEMENTS, handler)
    envelope = enforcement(1)
    await bus.publish(envelope)
    await bus_world.until(lambda: letters.has(1), "the retries are used up")

    assert handler.retry_counts == [0, 1, 2, 3, 4]
    pairs = zip(handler.calls, handler.calls[1:], strict=False)
    gaps = [later - earlier for earlier, later in pairs]
    wanted = [0.1, 0.2, 0.4, 0.4]
    assert all(gap >= delay * 0.99 for gap, delay in zip(gaps, wanted, strict=True)), gaps
    letter = letters.letters[0]
    assert letter.reason is Reason.RETRIES_EXHAUSTED
    assert letter.error == "The database is away."
    assert (letter.queue, letter.retry_count) == (ENFORCEMENTS, RETRY.max_retries)
    assert letter.message_id == envelope.message_id


async def test_f29_a_message_that_will_be_retried_waits_in_the_delay_queue_and_not_in_a_loop(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    handler = Failing(Unavailable("away"), bus_world.clock, times=2)
    await bus.consume(ENFORCEMENTS, handler)
    await bus.publish(enforcement(1))

    async def waits() -> bool:
        return await bus.depth(retry_exchange(0.2)) == 1

    await bus_world.until(waits, "the second retry sits in its delay queue")
    assert len(handler.calls) == 2
    assert await bus.depth(ENFORCEMENTS) == 0
    await bus_world.until(lambda: handler.called(3), "it comes back")


async def test_other_messages_pass_while_one_waits_for_its_retry(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    done: list[int] = []

    async def handler(envelope: Envelope) -> None:
        if number_of(envelope) == 0 and envelope.retry_count == 0:
            raise Unavailable("away")
        done.append(number_of(envelope))

    await bus.consume(ENFORCEMENTS, handler, prefetch=1)
    await bus.publish(*(enforcement(number) for number in range(3)))
    await bus_world.until(lambda: len(done) == 3, "all are handled")
    assert done == [1, 2, 0]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvalidInput("The enforcement has no rule."), "The enforcement has no rule."),
        (KeyError("rule"), "KeyError: 'rule'"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ],
    ids=["ours", "foreign", "wordless"],
)
async def test_any_other_failure_makes_a_dead_letter_at_once_with_its_reason(
    bus_world: World, error: Exception, words: str
) -> None:
    bus = await bus_world.make_bus()
    handler = Failing(error, bus_world.clock)
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus.consume(ENFORCEMENTS, handler)
    envelope = enforcement(1)
    await bus.publish(envelope)
    await bus_world.until(lambda: letters.has(1), "it is a dead letter")
    letter = letters.letters[0]
    assert (letter.reason, letter.error) == (Reason.FAILED, words)
    assert (letter.queue, letter.message_type) == (ENFORCEMENTS, MessageType.ENFORCEMENT_CREATED)
    assert letter.body == encode(envelope)
    assert len(handler.calls) == 1


BAD_BODIES = {
    "broken JSON": b'{"message_id": ',
    "not text": b"\xff\xfe\x00\x01",
    "empty": b"",
    "unknown type": msgspec.json.encode(
        {**msgspec.json.decode(encode(enforcement(1))), "message_type": "no.such"}
    ),
    "unknown version": msgspec.json.encode(
        {**msgspec.json.decode(encode(enforcement(1))), "version": 99}
    ),
    "wrong payload": msgspec.json.encode(
        {**msgspec.json.decode(encode(enforcement(1))), "payload": {"enforcement_id": "x"}}
    ),
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
async def test_f28_what_cannot_be_read_is_a_dead_letter_with_its_body_intact_and_stops_nobody(
    bus_world: World, body: bytes
) -> None:
    bus = await bus_world.make_bus()
    inbox, letters = Inbox(), Letters()
    await bus.consume_dead_letters(letters)
    await bus.consume(ENFORCEMENTS, inbox, prefetch=1)
    await bus_world.publish_raw("attune.executions", "enforcement.created", body)
    await bus.publish(enforcement(2))
    await bus_world.until(lambda: letters.has(1) and inbox.has(1), "both came where they belong")
    letter = letters.letters[0]
    assert (letter.reason, letter.body, letter.queue) == (Reason.BAD_MESSAGE, body, ENFORCEMENTS)
    assert letter.error
    assert inbox.numbers == [2]
    assert await bus.depth(ENFORCEMENTS) == 0


async def test_a_foreign_retry_count_cannot_harm(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    handler = Failing(Unavailable("away"), bus_world.clock)
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus.consume(ENFORCEMENTS, handler)
    envelope = msgspec.structs.replace(enforcement(1), retry_count=10**9)
    await bus_world.publish_raw("attune.executions", "enforcement.created", encode(envelope))
    await bus_world.until(lambda: letters.has(1), "it is a dead letter after one attempt")
    assert len(handler.calls) == 1


async def test_a_handler_whose_inner_task_was_cancelled_keeps_no_message(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    handled: list[int] = []

    async def handler(envelope: Envelope) -> None:
        if envelope.retry_count == 0:
            inner = asyncio.create_task(asyncio.Event().wait())
            inner.cancel()
            await inner
        handled.append(number_of(envelope))

    await bus.consume(ENFORCEMENTS, handler, prefetch=1)
    await bus.publish(enforcement(1), enforcement(2))
    await bus_world.until(lambda: sorted(handled) == [1, 2], "both are handled after a retry")


async def test_a_handler_may_publish(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    inbox = Inbox()

    async def handler(envelope: Envelope) -> None:
        item = STAMP.envelope(MessageType.ENFORCEMENT_CREATED, enforcement(9).items[0])
        await bus.publish(item)

    await bus.consume(StageQueue.EXECUTION_REQUESTED.value, handler)
    await bus.consume(ENFORCEMENTS, inbox)
    await bus.publish(enforcement(1), to=StageQueue.EXECUTION_REQUESTED.value)
    await bus_world.until(lambda: inbox.has(1), "what the handler published arrives")
    assert inbox.numbers == [9]
