"""The specification's tests of the queue and of completion, under its names, and its example."""

import pytest

from attune.kernel.errors import Conflict, Limited
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.queues.queries import queue_stats
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World

S = ExecutionStatus


async def test_immediate_execution_with_capacity(bench: Bench) -> None:
    await bench.policy(concurrency_limit=2)
    ids = await bench.ask(count=2)
    assert (await bench.running(), await bench.waiting()) == (ids, [])


async def test_fifo_ordering_with_three_executions(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    ids = [(await bench.ask())[0] for _ in range(3)]
    for one in ids:
        assert await bench.running() == [one]
        await bench.end(one)


async def test_completion_notification_releases_queue_slot(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    [only] = await bench.ask()
    assert (await bench.lane()).active_count == 1
    await bench.end(only)
    assert (await bench.lane()).active_count == 0


async def test_multiple_actions_have_independent_queues(bench: Bench) -> None:
    await bench.policy("a.first", over="a.one", concurrency_limit=1)
    await bench.policy("a.second", over="a.two", concurrency_limit=1)
    ones, twos = await bench.ask("a.one", 2), await bench.ask("a.two", 2)
    await bench.end(twos[0])
    assert (await bench.running(), await bench.waiting()) == ([ones[0], twos[1]], [ones[1]])


async def test_cancellation_removes_from_queue(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    first, second, third = await bench.ask(count=3)
    assert (await bench.flow.cancel(second)).status is S.CANCELLED
    assert await bench.waiting() == [third]
    await bench.end(first)
    assert await bench.running() == [third]
    with pytest.raises(Conflict):
        await bench.flow.cancel(second)


async def test_queue_statistics_accuracy(bench: Bench) -> None:
    await bench.policy(concurrency_limit=2)
    began = bench.clock.now()
    ids = await bench.ask(count=5)
    bench.step(1)
    await bench.end(ids[0], status=S.FAILED)
    stats = await bench.database.read(queue_stats, "a.one")
    assert (stats.queue_length, stats.active_count) == (2, 2)
    assert (stats.total_enqueued, stats.total_completed) == (5, 1)
    assert (stats.oldest_enqueued_at, stats.last_updated) == (began, bench.clock.now())
    await bench.end(*ids[1:])
    stats = await bench.database.read(queue_stats, "a.one")
    assert (stats.queue_length, stats.active_count, stats.total_completed) == (0, 0, 5)
    assert stats.oldest_enqueued_at is None


async def test_queue_full_handling(bench: Bench) -> None:
    await bench.set(max_queue_length=2)
    await bench.policy(concurrency_limit=1)
    await bench.ask(count=3)
    with pytest.raises(Limited, match=r"Queue full \(max length: 2\)"):
        await bench.ask()


async def test_clear_all_queues(bench: Bench) -> None:
    await bench.policy(over=None, concurrency_limit=1)
    await bench.ask("a.one", 3)
    await bench.ask("b.one", 2)
    cleared = [await bench.flow.clear(ref, None, "eva") for ref in ("a.one", "b.one")]
    assert (cleared, await bench.waiting()) == ([2, 2], [])


async def test_high_concurrency_ordering_of_100_executions(proved: World) -> None:
    await proved.policy("core.three", over="core.noop", concurrency_limit=3)
    request = Request(action_ref="core.noop")
    ids = [one.id for _ in range(10) for one in await proved.flow.request(Order((request,) * 10))]
    await proved.over()
    started = "SELECT id FROM execution ORDER BY started_at, id"
    assert await proved.values(int, started) == ids


async def test_example_a_to_e_with_a_limit_of_two(bench: Bench) -> None:
    await bench.policy(concurrency_limit=2)
    a, b, c, d, e = [(await bench.ask())[0] for _ in range(5)]
    assert (await bench.running(), await bench.waiting()) == ([a, b], [c, d, e])
    for ended, running, waiting in (
        (a, [b, c], [d, e]),
        (b, [c, d], [e]),
        (c, [d, e], []),
        (d, [e], []),
        (e, [], []),
    ):
        await bench.end(ended)
        assert (await bench.running(), await bench.waiting()) == (running, waiting)


async def test_notify_completion_releases_slot(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    [first] = await bench.ask()
    await bench.end(first)
    [second] = await bench.ask()
    assert await bench.running() == [second]


async def test_notify_completion_wakes_waiting(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    first, second = await bench.ask(count=2)
    assert await bench.end(first) == [second]


async def test_multiple_completions_fifo_order(bench: Bench) -> None:
    await bench.policy(concurrency_limit=3)
    ids = await bench.ask(count=9)
    for number in (2, 0, 1):
        await bench.end(ids[number])
    assert await bench.running() == ids[3:6]


async def test_completion_with_no_queue(bench: Bench) -> None:
    """The end of one whose lane has no policy, and a second word on one whose place is gone."""
    [only] = await bench.ask()
    word = await bench.word(only, S.COMPLETED, bench.clock.now())
    await bench.complete(word)
    assert (await bench.complete(word)).late == {only}
    assert (await bench.lane()).active_count == 0
