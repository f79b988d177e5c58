"""F30: of every queue, whatever the cause, a dead letter is kept in the database, and replay delivers it."""

import pytest

from attune.bus.outcome import Reason
from attune.bus.topology import (
    UNROUTED,
    Queue,
    StageQueue,
    broadcast_queue,
    worker_queue_name,
)
from attune.dead_letters.model import LetterFilters
from attune.kernel.envelope import encode
from attune.kernel.errors import AttuneError, Conflict, InvalidInput, Unavailable
from attune.kernel.ids import IdentityId, WorkerId
from attune.kernel.messages import MessageType
from tests.contract.bus.messages import (
    STAMP,
    WORK,
    Inbox,
    enforcement,
    hand_off,
    rule_updated,
)
from tests.contract.bus.worlds import RETRY, TOPOLOGY
from tests.contract.dead_letters.post import (
    MORTAL,
    MORTAL_WORKER,
    WORKER,
    Post,
    Stage,
    queues_of,
)

ME = IdentityId(1)
QUEUES = queues_of(TOPOLOGY, WORKER)
ALL = LetterFilters()
POISON = b"\x00\xff no JSON"


async def replay_all(post: Post, queues: list[Queue], stages: list[Stage]) -> None:
    """A bus as the API has one sends all back, and each stage takes its own."""
    sender = await post.make_bus(TOPOLOGY if queues is QUEUES else MORTAL)
    done = await post.replayer(sender).replay_many(ALL, ME, 100)
    assert (done.replayed, done.refused, done.remaining) == (len(queues), (), 0)
    await post.until(lambda: all(1 in each.numbers() for each in stages), "each stage has it")
    for stage in stages:
        [taken] = [each for each in stage.taken if each.items == enforcement(1).items]
        assert taken.retry_count == 0
    letters = await post.letters()
    assert [(each.replay_count, each.replayed_by) for each in letters] == [(1, ME)] * len(queues)


@pytest.mark.parametrize(
    ("reason", "failure", "retries"),
    [
        (Reason.FAILED, InvalidInput("no"), 0),
        (Reason.RETRIES_EXHAUSTED, Unavailable("away"), RETRY.max_retries),
    ],
)
async def test_f30_what_a_handler_gives_up_is_kept_of_every_queue_and_replay_delivers_it(
    post: Post, reason: Reason, failure: AttuneError, retries: int
) -> None:
    bus = await post.make_bus()
    await bus.declare(WORKER)
    await post.start_keeper(bus)
    stages = [Stage(failure) for _ in QUEUES]
    for queue, stage in zip(QUEUES, stages, strict=True):
        await bus.consume(queue.name, stage)
        await bus.publish(enforcement(1), to=queue.name)
    letters = await post.kept(len(QUEUES))
    assert {(each.queue, each.reason) for each in letters} == {(q.name, reason) for q in QUEUES}
    assert {(each.error, each.retry_count) for each in letters} == {(failure.message, retries)}
    for stage in stages:
        stage.failure = None
    await replay_all(post, QUEUES, stages)


async def test_f30_what_expires_is_kept_of_every_queue_and_replay_delivers_it(post: Post) -> None:
    bus = await post.make_bus(MORTAL)
    await bus.declare(MORTAL_WORKER)
    await post.start_keeper(bus)
    queues = queues_of(MORTAL, MORTAL_WORKER)
    for queue in queues:
        await bus.publish(enforcement(1), to=queue.name)
    letters = await post.kept(len(queues))
    expired = {(queue.name, Reason.EXPIRED) for queue in queues}
    assert {(each.queue, each.reason) for each in letters} == expired
    stages = [Stage() for _ in queues]
    for queue, stage in zip(queues, stages, strict=True):
        await bus.consume(queue.name, stage)
    await replay_all(post, queues, stages)


@pytest.mark.parametrize("reason", [Reason.REJECTED, Reason.OVERFLOW])
async def test_f30_what_the_broker_buries_is_kept_of_every_queue_and_replay_delivers_it(
    post: Post, reason: Reason
) -> None:
    bus = await post.make_bus()
    await bus.declare(WORKER)
    await post.start_keeper(bus)
    for queue in QUEUES:
        await post.bury(reason, queue, encode(enforcement(1)), encode(enforcement(2)))
    letters = await post.kept(len(QUEUES))
    assert {(each.queue, each.reason) for each in letters} == {(q.name, reason) for q in QUEUES}
    stages = [Stage() for _ in QUEUES]
    for queue, stage in zip(QUEUES, stages, strict=True):
        await bus.consume(queue.name, stage)
    await replay_all(post, QUEUES, stages)


async def test_f30_poison_is_kept_of_every_queue_and_replayed_it_dies_again_as_a_letter_of_its_own(
    post: Post,
) -> None:
    bus = await post.make_bus()
    await bus.declare(WORKER)
    await post.start_keeper(bus)
    for queue in QUEUES:
        await bus.consume(queue.name, Inbox())
        await bus.send_raw(queue.name, POISON)
    first = await post.kept(len(QUEUES))
    found = {(each.queue, each.reason, each.size_bytes) for each in first}
    assert found == {(q.name, Reason.BAD_MESSAGE, len(POISON)) for q in QUEUES}
    done = await post.replayer(bus).replay_many(ALL, ME, 100)
    assert (done.replayed, done.refused) == (len(QUEUES), ())
    again = await post.kept(len(QUEUES), replayed=False)
    assert {each.queue for each in again} == {queue.name for queue in QUEUES}
    assert {each.id for each in again}.isdisjoint(each.id for each in first)
    old = await post.letters(replayed=True)
    assert {each.id for each in old} == {each.id for each in first}
    assert {each.replay_count for each in old} == {1}


async def test_f30_what_somebody_put_into_a_dead_letter_queue_is_kept_and_goes_the_way_of_its_type(
    post: Post,
) -> None:
    bus = await post.make_bus()
    ends = [queue.name for queue in TOPOLOGY.dead_letter_queues()]
    for number, end in enumerate(ends):
        await bus.send_raw(end, encode(enforcement(number)))
    await post.start_keeper(bus)
    letters = await post.kept(len(ends))
    reasons = {each.queue: each.reason for each in letters}
    assert reasons == {**dict.fromkeys(ends, Reason.REJECTED), UNROUTED: Reason.UNROUTED}
    stage = Stage()
    await bus.consume(StageQueue.ENFORCEMENT_CREATED, stage)
    await post.replayer(bus).replay_many(ALL, ME, 100)
    await post.until(lambda: len(stage.taken) == len(ends), "all are taken")
    assert sorted(stage.numbers()) == list(range(len(ends)))


async def test_f30_unrouted_work_of_every_type_is_kept_and_finds_its_stage_by_replay(
    post: Post,
) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    sent = [STAMP.envelope(kind, item) for kind, item in WORK.items()]
    for envelope in sent:
        await post.world.publish_raw("attune.executions", "nobody.knows", encode(envelope))
    letters = await post.kept(len(sent))
    assert {(each.queue, each.reason) for each in letters} == {(UNROUTED, Reason.UNROUTED)}
    inboxes = {stage: Inbox() for stage in StageQueue}
    for stage, inbox in inboxes.items():
        await bus.consume(stage, inbox)
    await post.replayer(bus).replay_many(ALL, ME, 100)
    await post.until(lambda: all(each.has(1) for each in inboxes.values()), "each has its own")
    taken = [envelope.message_id for inbox in inboxes.values() for envelope in inbox.envelopes]
    assert sorted(taken) == sorted(envelope.message_id for envelope in sent)


async def test_f30_an_order_for_a_worker_that_is_not_there_is_kept_and_waits_for_it(
    post: Post,
) -> None:
    bus = await post.make_bus()
    await post.start_keeper(bus)
    order = hand_off(WorkerId(7))
    await bus.publish(order, to=worker_queue_name(WorkerId(7)))
    [letter] = await post.kept(1)
    assert (letter.reason, letter.message_type) == (Reason.UNROUTED, "execution.scheduled")
    with pytest.raises(Conflict, match=r"attune\.execution\.worker\.7 is gone with its worker"):
        await post.replayer(bus).replay(letter.id, ME)
    [letter] = await post.letters()
    assert (letter.replayed_at, letter.replay_count) == (None, 0)
    await bus.declare(WORKER)
    inbox = Inbox()
    await bus.consume(WORKER.name, inbox)
    await post.replayer(bus).replay(letter.id, ME)
    await post.until(lambda: inbox.has(1), "the worker has it")
    assert inbox.envelopes == [order]


async def test_f30_news_that_one_process_refused_are_kept_and_told_again(post: Post) -> None:
    bus, other = await post.make_bus(), await post.make_bus()
    await post.start_keeper(other)
    news = broadcast_queue("process-1", MessageType.RULE_UPDATED)
    await bus.declare(news)
    listener = Stage(InvalidInput("no"))
    await bus.consume(news.name, listener)
    await bus.publish(rule_updated(3))
    await post.world.publish_raw("attune.notices", "rule.updated", POISON)
    letters = await post.kept(2)
    assert {(each.queue, each.reason) for each in letters} == {
        (news.name, Reason.FAILED),
        (news.name, Reason.BAD_MESSAGE),
    }
    listener.failure = None
    done = await post.replayer(other).replay_many(ALL, ME, 100)
    assert (done.replayed, done.remaining) == (1, 1)
    [refused] = done.refused
    assert "its body is no envelope" in refused.error
    await post.until(lambda: bool(listener.taken), "it is told again")
    assert [each.items for each in listener.taken] == [rule_updated(3).items]
