"""Letters are marked when they were sent and not before; many are sent within bounds; the rest is counted."""

import asyncio

import pytest
import structlog.testing

from attune.bus.outcome import Reason
from attune.bus.port import Bus
from attune.bus.topology import StageQueue
from attune.dead_letters.model import LetterFilters
from attune.dead_letters.queries import count_letters, depth, find_letter
from attune.dead_letters.steps import delete_letter
from attune.kernel.envelope import encode
from attune.kernel.errors import BusUnavailable, Conflict, InvalidInput, NotFound
from attune.kernel.ids import DeadLetterId, IdentityId
from tests.contract.bus.messages import Inbox, enforcement
from tests.contract.dead_letters.post import WORKER, Post, Stage

ME, YOU = IdentityId(1), IdentityId(2)
ALL = LetterFilters()
EVENTS = StageQueue.EVENT_CREATED.value
ENFORCEMENTS = StageQueue.ENFORCEMENT_CREATED.value


async def died(post: Post, bus: Bus, queue: str, *bodies: bytes) -> Stage:
    """Letters of a queue in which a handler gave up, and that handler, which is well now."""
    before = len(await post.letters())
    stage = Stage(InvalidInput("no"))
    await bus.consume(queue, stage)
    for number, body in enumerate(bodies, 1):
        await bus.send_raw(queue, body)
        await post.kept(before + number)
    stage.failure = None
    return stage


def letters_of(*numbers: int) -> list[bytes]:
    return [encode(enforcement(number)) for number in numbers]


async def test_a_replay_is_marked_with_who_and_when_and_may_be_repeated(post: Post) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    stage = await died(post, bus, EVENTS, *letters_of(1))
    [letter] = await post.letters()
    assert (letter.replayed_at, letter.replayed_by, letter.replay_count) == (None, None, 0)
    assert await post.database.read(depth) == 1
    first = await post.replayer(bus).replay(letter.id, ME)
    assert (first.replayed_by, first.replay_count) == (ME, 1)
    assert first.replayed_at == first.updated >= letter.updated
    assert await post.database.read(depth) == 0
    again = await post.replayer(bus).replay(letter.id, YOU)
    assert (again.replayed_by, again.replay_count) == (YOU, 2)
    await post.until(lambda: len(stage.taken) == 2, "both are delivered")
    assert await post.database.run(delete_letter, letter.id)
    assert not await post.database.run(delete_letter, letter.id)
    with pytest.raises(NotFound, match=f"no dead letter {letter.id}"):
        await post.replayer(bus).replay(letter.id, ME)


async def test_what_the_broker_did_not_take_is_not_marked(post: Post) -> None:
    keeping = await post.make_bus()
    await post.start_keeper(keeping)
    await died(post, keeping, EVENTS, *letters_of(1, 2))
    bus = await post.make_bus(publish_timeout=0.5)
    newest, _ = await post.letters()
    await post.world.stop()
    one = asyncio.create_task(post.replayer(bus).replay(newest.id, ME))
    many = asyncio.create_task(post.replayer(bus).replay_many(ALL, ME, 10))
    await post.until(lambda: one.done() and many.done(), "both are told")
    assert isinstance(one.exception(), BusUnavailable)
    failed = many.exception()
    assert isinstance(failed, BusUnavailable)
    assert failed.fields == {"replayed": 0}
    assert {each.replay_count for each in await post.letters()} == {0}
    assert await post.database.read(depth) == 2


async def test_many_are_replayed_oldest_first_up_to_the_limit(post: Post) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    stage = await died(post, bus, EVENTS, *letters_of(1, 2, 3, 4, 5))
    with structlog.testing.capture_logs() as lines:
        done = await post.replayer(bus).replay_many(ALL, ME, 3)
    assert (done.replayed, done.refused, done.remaining) == (3, (), 2)
    [line] = [each for each in lines if each["event"] == "Replayed dead letters."]
    assert (line["queue"], line["count"], line["by"]) == (EVENTS, 3, ME)
    await post.until(lambda: len(stage.taken) == 3, "three are delivered")
    assert sorted(stage.numbers()) == [1, 2, 3]
    done = await post.replayer(bus).replay_many(ALL, ME, 1_000_000)
    assert (done.replayed, done.remaining) == (2, 0)
    assert (await post.replayer(bus).replay_many(ALL, ME, 10)).replayed == 0


async def test_many_more_than_fit_into_memory_together_are_replayed(post: Post) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    stage = Stage(InvalidInput("no"))
    await bus.consume(EVENTS, stage)
    await bus.send_raw(EVENTS, *letters_of(*range(120)))
    await post.kept(120)
    stage.failure = None
    done = await post.replayer(bus).replay_many(ALL, ME, 1000)
    assert (done.replayed, done.remaining) == (120, 0)
    await post.until(lambda: len(stage.taken) == 120, "all are delivered")
    assert sorted(stage.numbers()) == list(range(120))


async def test_only_those_that_were_asked_for_are_replayed(post: Post) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    await died(post, bus, EVENTS, b"poison", *letters_of(1))
    await died(post, bus, ENFORCEMENTS, *letters_of(2))
    replayer = post.replayer(bus)
    for wanted, count in (
        (LetterFilters(queue="executor.nothing"), 0),
        (LetterFilters(queue=EVENTS, message_type="enforcement.created"), 1),
        (LetterFilters(queue=ENFORCEMENTS, reason=Reason.EXPIRED), 0),
        (LetterFilters(reason=Reason.FAILED), 1),
    ):
        assert (await replayer.replay_many(wanted, ME, 10)).replayed == count, wanted
    [poison] = await post.letters(replayed=False)
    assert (poison.queue, poison.reason) == (EVENTS, Reason.BAD_MESSAGE)
    assert await post.database.read(count_letters, LetterFilters(replayed=True)) == 2


async def test_letters_of_a_worker_that_is_gone_are_refused_and_keep_nobody_back(
    post: Post,
) -> None:
    bus = await post.make_bus()
    await bus.declare(WORKER)
    await post.start_keeper(bus)
    await died(post, bus, WORKER.name, *letters_of(1, 2))
    stage = await died(post, bus, EVENTS, *letters_of(3))
    await bus.delete(WORKER.name)
    done = await post.replayer(bus).replay_many(ALL, ME, 10)
    assert (done.replayed, done.remaining) == (1, 2)
    assert {each.error for each in done.refused} == {
        f"The queue {WORKER.name} is gone with its worker: the message cannot be sent back to it."
    }
    await post.until(lambda: stage.numbers() == [3], "the other one is delivered")
    [refused, _] = await post.letters(queue=WORKER.name)
    with pytest.raises(Conflict, match="gone with its worker"):
        await post.replayer(bus).replay(refused.id, ME)
    assert {each.replay_count for each in await post.letters(queue=WORKER.name)} == {0}


async def test_what_dies_again_meanwhile_is_left_for_another_time(post: Post) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    await bus.consume(EVENTS, Inbox())
    await bus.send_raw(EVENTS, *(b"poison %d" % number for number in range(60)))
    await post.kept(60)
    done = await post.replayer(bus).replay_many(ALL, ME, 1000)
    assert done.replayed == 60
    again = await post.kept(60, replayed=False)
    assert len(again) == 60
    assert len(await post.letters()) == 120


async def test_a_letter_is_found_with_its_body_which_stands_in_no_list(post: Post) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    await died(post, bus, EVENTS, b"hunter2 \xff")
    [listed] = await post.letters()
    assert "hunter2" not in repr(listed)
    letter = await post.database.read(find_letter, listed.id)
    assert letter is not None
    assert (letter.body, letter.size_bytes) == (b"hunter2 \xff", 9)
    assert "hunter2" not in repr(letter)
    assert await post.database.read(find_letter, DeadLetterId(999_999)) is None
