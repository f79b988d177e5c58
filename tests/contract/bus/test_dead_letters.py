"""F30: every way to die ends in a dead-letter queue, and somebody can read it there."""

import pytest

from attune.bus.outcome import Reason
from attune.bus.topology import (
    BROADCAST_DEAD_LETTERS,
    UNROUTED,
    WORKER_DEAD_LETTERS,
    Queue,
    StageQueue,
    broadcast_queue,
    standard_topology,
    worker_queue,
)
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import WorkerId
from attune.kernel.messages import MessageType
from tests.contract.bus.messages import Failing, Inbox, Letters, enforcement, hand_off
from tests.contract.bus.worlds import RETRY, TOPOLOGY, World

ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value
SHORT_LIVED = standard_topology(message_ttl=0.3, retry=RETRY)
WORKER = worker_queue(WorkerId(7), ttl_seconds=0.3)
NEWS = broadcast_queue("process-1", MessageType.RULE_UPDATED)


def stages_of(queues: tuple[Queue, ...]) -> list[Queue]:
    return [queue for queue in queues if queue.name in set(StageQueue)]


def test_the_names_that_the_specification_fixes_are_there() -> None:
    names = {queue.name for queue in TOPOLOGY.queues}
    assert {
        "executor.enforcement.created.dlq",
        "executor.execution.requested.dlq",
        "executor.execution.status.dlq",
        "attune.execution.worker.dlq",
    } <= names
    assert {"attune.events", "attune.executions", "attune.executions.dlx"} <= {
        exchange.name for exchange in TOPOLOGY.exchanges
    }


async def test_f30_what_expires_reaches_the_dead_letter_queue_of_every_queue(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus(SHORT_LIVED)
    await bus.declare(WORKER)
    mortal = [*stages_of(SHORT_LIVED.queues), WORKER]
    for queue in mortal:
        await bus.publish(enforcement(1), to=queue.name)

    async def all_died() -> bool:
        depths = [await bus.depth(queue.dead_letter_queue or "") for queue in mortal]
        return depths == [1] * len(mortal)

    await bus_world.until(all_died, "each dead-letter queue has its message")
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus_world.until(lambda: letters.has(len(mortal)), "all are read")
    assert sorted(letter.queue for letter in letters.letters) == sorted(q.name for q in mortal)
    assert {letter.reason for letter in letters.letters} == {Reason.EXPIRED}
    assert {letter.message_type for letter in letters.letters} == {"enforcement.created"}


async def test_f30_what_its_routing_brought_expires_into_the_dead_letter_queue_too(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus(SHORT_LIVED)
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus.publish(enforcement(1))
    await bus_world.until(lambda: letters.has(1), "it is read")
    assert letters.letters[0].queue == ENFORCEMENTS


async def test_f30_what_a_handler_rejects_reaches_the_dead_letter_queue_of_every_queue(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    await bus.declare(WORKER)
    await bus.declare(NEWS)
    handler = Failing(InvalidInput("no"), bus_world.clock)
    queues = [*stages_of(TOPOLOGY.queues), WORKER, NEWS]
    for queue in queues:
        await bus.consume(queue.name, handler)
    for queue in queues[:-1]:
        await bus.publish(enforcement(1), to=queue.name)
    await bus_world.publish_raw("attune.notices", "rule.updated", b"no JSON")

    async def all_died() -> bool:
        depths = [await bus.depth(queue.dead_letter_queue or "") for queue in queues]
        return depths == [1] * len(queues)

    await bus_world.until(all_died, "each dead-letter queue has its message")


def test_every_dead_letter_queue_of_the_topology_is_among_those_that_are_read() -> None:
    read = {queue.name for queue in TOPOLOGY.dead_letter_queues()}
    assert {queue.dead_letter_queue for queue in stages_of(TOPOLOGY.queues)} <= read
    assert {WORKER_DEAD_LETTERS, BROADCAST_DEAD_LETTERS, UNROUTED} <= read


async def test_a_worker_that_never_comes_leaves_its_order_as_an_expired_dead_letter(
    bus_world: World,
) -> None:
    bus = await bus_world.make_bus()
    letters = Letters()
    await bus.declare(WORKER)
    await bus.consume_dead_letters(letters, queue=WORKER_DEAD_LETTERS)
    order = hand_off(WorkerId(7))
    await bus.publish(order, to=WORKER.name)
    await bus_world.until(lambda: letters.has(1), "the order expires")
    letter = letters.letters[0]
    assert (letter.reason, letter.queue) == (Reason.EXPIRED, WORKER.name)
    assert (letter.message_id, letter.message_type) == (order.message_id, "execution.scheduled")


async def test_what_is_taken_in_time_does_not_expire(bus_world: World) -> None:
    bus = await bus_world.make_bus(SHORT_LIVED)
    inbox = Inbox()
    await bus.consume(ENFORCEMENTS, inbox)
    await bus.publish(enforcement(1))
    await bus.publish(enforcement(1), to=StageQueue.EVENT_CREATED.value)

    async def other_died() -> bool:
        return await bus.depth(f"{StageQueue.EVENT_CREATED}.dlq") == 1

    await bus_world.until(other_died, "its neighbour expires")
    assert len(inbox.envelopes) == 1
    assert await bus.depth(f"{ENFORCEMENTS}.dlq") == 0


async def test_a_dead_letter_stays_until_its_handler_succeeds(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    letters = Letters(failures=RETRY.max_retries + 3)
    await bus.consume_dead_letters(letters)
    await bus_world.publish_raw("attune.executions", "enforcement.created", b"broken")
    await bus.consume(ENFORCEMENTS, Inbox())
    await bus_world.until(lambda: letters.has(1), "the letter is handled at last")
    letter = letters.letters[0]
    assert letters.calls == RETRY.max_retries + 4
    assert (letter.queue, letter.reason) == (ENFORCEMENTS, Reason.BAD_MESSAGE)
    assert letter.body == b"broken"


async def test_an_expired_letter_keeps_its_own_story_through_retries(bus_world: World) -> None:
    bus = await bus_world.make_bus(SHORT_LIVED)
    letters = Letters(failures=2)
    await bus.consume_dead_letters(letters)
    await bus.publish(enforcement(1))
    await bus_world.until(lambda: letters.has(1), "the letter is handled at last")
    letter = letters.letters[0]
    assert (letter.queue, letter.reason) == (ENFORCEMENTS, Reason.EXPIRED)


async def test_letters_wait_while_nobody_reads_them(bus_world: World) -> None:
    bus = await bus_world.make_bus()
    subscription = await bus.consume_dead_letters(Letters())
    await subscription.cancel()
    await bus.consume(ENFORCEMENTS, Failing(InvalidInput("no"), bus_world.clock))
    await bus.publish(enforcement(1))

    async def kept() -> bool:
        return await bus.depth(f"{ENFORCEMENTS}.dlq") == 1

    await bus_world.until(kept, "the letter waits")


@pytest.mark.parametrize("executions", ["attune.executions", "acme.work"])
async def test_the_name_of_the_exchange_is_a_setting(bus_world: World, executions: str) -> None:
    bus = await bus_world.make_bus(standard_topology(executions=executions, retry=RETRY))
    letters = Letters()
    await bus.consume_dead_letters(letters)
    await bus.consume(ENFORCEMENTS, Failing(InvalidInput("no"), bus_world.clock))
    await bus.publish(enforcement(1))
    await bus_world.publish_raw(f"{executions}.dlx", "nobody.knows", b"{}")
    await bus_world.until(lambda: letters.has(2), "both letters are read")
    assert {letter.reason for letter in letters.letters} == {Reason.FAILED, Reason.UNROUTED}
