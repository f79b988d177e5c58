"""Between two attempts: what is told of an execution, where it is listed, and what it has waited for."""

from datetime import timedelta
from typing import Any

from attune.catalog.retrying import Retry
from attune.catalog.steps.actions import delete_action
from attune.identities.row_conditions import ALWAYS
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.queries import (
    ExecutionFilters,
    count_executions,
    find_execution,
    list_executions,
    stats,
)
from attune.pipeline.listing import Window
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.measures import queue_counts
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.whys import gates, told_history, waits, why

G = GateName
S = ExecutionStatus


async def ask(bench: Bench, count: int = 1, most: int = 1, **how: Any) -> list[ExecutionId]:
    request = Request(
        action_ref="a.one",
        parameters={"customer": "red"},
        max_retries=most,
        retry=Retry(**{"delay": 10, **how}),
    )
    return [one.id for one in await bench.order([request] * count)]


async def lost(bench: Bench, flow: Any = None) -> None:
    hand = await bench.value(int, "SELECT min(id) FROM worker")
    await (flow or bench.flow).take_back(LostWorker(hand, "hand", cordoned=False), "was lost")


class TestWhy:
    async def test_it_tells_until_when_and_which_attempt_comes_next(self, bench: Bench) -> None:
        [one] = await ask(bench)
        await bench.end(one, status=S.FAILED)
        found = await why(bench, one)
        due = bench.clock.now() + timedelta(seconds=10)
        assert (found.waiting, found.position) == (True, None)
        [gate] = found.blockers
        assert (gate.name, gate.until) == (G.DELAY, due)
        assert gate.text == "attempt 1 failed, and attempt 2 may begin at 2026-01-01T00:00:10Z"
        assert found.next == "its delay ends at 2026-01-01T00:00:10Z"

    async def test_one_that_came_back_waits_for_what_its_lane_waits_for(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 2)
        await bench.end(ids[0], status=S.FAILED)
        bench.step(10)
        await bench.flow.release_delayed()
        assert (await gates(bench, ids[0]))[0] is G.CONCURRENCY

    async def test_the_place_of_the_others_does_not_count_it(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 3)
        await bench.end(ids[0], status=S.FAILED)
        assert (await why(bench, ids[2])).position == 1
        bench.step(10)
        await bench.flow.release_delayed()
        assert (await why(bench, ids[2])).position == 2


class TestHistory:
    async def test_delays_are_waits_and_the_time_in_which_it_ran_is_none(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 2)
        bench.step(3)
        await bench.start(ids[0])
        bench.step(4)
        await bench.end(ids[0], status=S.FAILED, seconds=4)
        bench.step(5)
        so_far = [(G.WORKER, 0, 3), (G.DELAY, 7, None)]
        assert await waits(bench, ids[0]) == so_far
        bench.step(5)
        await bench.flow.release_delayed()
        bench.step(2)
        so_far = [(G.WORKER, 0, 3), (G.DELAY, 7, 17), (G.CONCURRENCY, 17, None)]
        assert await waits(bench, ids[0]) == so_far
        await bench.end(ids[1], seconds=None)
        await bench.flow.schedule()
        bench.step(1)
        await bench.start(ids[0])
        bench.step(50)
        so_far = [*so_far[:2], (G.CONCURRENCY, 17, 19), (G.WORKER, 19, 20)]
        assert await waits(bench, ids[0]) == so_far
        await bench.end(ids[0], seconds=50)
        assert await waits(bench, ids[0]) == so_far
        assert [e.attempt for e in (await told_history(bench, ids[0])).attempts] == [1]

    async def test_moves_of_one_instant_are_followed_in_their_order(self, bench: Bench) -> None:
        """Back and forth between lanes of which the later one may be the older."""
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 2)
        for grouping in (["customer"], [], ["customer"], []):
            await bench.change(concurrency_limit=1, concurrency_parameters=grouping)
        assert await waits(bench, ids[1]) == [(G.CONCURRENCY, 0, None)]
        await bench.end(ids[0], status=S.FAILED)
        assert [reason for reason, *_ in await waits(bench, ids[0])][-1:] == [G.DELAY]

    async def test_one_that_waits_for_a_worker_after_its_delay_does_so_since_then(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench)
        await bench.end(one, status=S.FAILED)
        await bench.execute("UPDATE worker SET capacity = 0")
        bench.step(10)
        await bench.flow.release_delayed()
        bench.step(5)
        assert await waits(bench, one) == [(G.DELAY, 0, 10), (G.WORKER, 10, None)]

    async def test_between_a_start_and_the_loss_of_its_worker_it_did_not_wait(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench)
        bench.step(2)
        await bench.start(one)
        bench.step(5)
        await lost(bench, bench.new_flow("api", through=False))
        bench.step(1)
        assert await waits(bench, one) == [(G.WORKER, 0, 2), (G.WORKER, 7, None)]
        await bench.flow.schedule()
        bench.step(1)
        await bench.start(one)
        assert await waits(bench, one) == [(G.WORKER, 0, 2), (G.WORKER, 7, 9)]

    async def test_it_goes_on_in_the_lane_to_which_it_comes_back(self, bench: Bench) -> None:
        [one] = await ask(bench)
        await bench.end(one, status=S.FAILED)
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        [_first] = await bench.ask(customer="red")
        bench.step(12)
        await bench.flow.release_delayed()
        bench.step(3)
        assert await waits(bench, one) == [(G.DELAY, 0, 12), (G.CONCURRENCY, 12, None)]

    async def test_it_goes_there_and_back_again(self, bench: Bench) -> None:
        """From one lane into a delay, out of it into another lane, and the same way back."""
        await bench.policy(concurrency_limit=1)
        [one] = await ask(bench, most=3)
        await bench.end(one, status=S.FAILED)
        await bench.change(concurrency_parameters=["customer"])
        bench.step(10)
        await bench.flow.release_delayed()
        bench.step(1)
        await bench.start(one)
        await bench.end(one, status=S.FAILED)
        await bench.change(concurrency_parameters=[])
        [_other] = await bench.ask()
        bench.step(10)
        await bench.flow.release_delayed()
        bench.step(1)
        expected = [(G.DELAY, 0, 10), (G.WORKER, 10, 11), (G.DELAY, 11, 21)]
        assert await waits(bench, one) == [*expected, (G.CONCURRENCY, 21, None)]

    async def test_one_that_was_cancelled_while_it_rested_waited_until_then(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench)
        await bench.end(one, status=S.FAILED)
        bench.step(4)
        await bench.flow.cancel(one)
        bench.step(4)
        assert await waits(bench, one) == [(G.DELAY, 0, 4)]
        assert (await why(bench, one)).waiting is False


class TestLists:
    async def test_it_is_listed_and_counted_as_one_that_is_requested(self, bench: Bench) -> None:
        ids = await ask(bench, 3)
        await bench.start(ids[1])
        await bench.end(ids[0], status=S.FAILED)
        await bench.end(ids[2], status=S.FAILED)
        for status, expected in [
            (S.REQUESTED, [ids[2], ids[0]]),
            (S.RUNNING, [ids[1]]),
            (S.FAILED, []),
            (None, ids[::-1]),
        ]:
            wanted = ExecutionFilters(status=status, action_ref="a.one")
            found = await bench.database.read(list_executions, wanted, ALWAYS, Window(10, 0))
            assert [one.id for one in found] == expected
            total = await bench.database.read(count_executions, wanted, ALWAYS)
            assert total == len(expected)
        counts = await bench.database.read(stats, ALWAYS)
        assert (counts.total, counts.pending, counts.running) == (3, 2, 1)
        assert (counts.failed, counts.completed) == (0, 0)

    async def test_its_details_say_that_it_waits_for_its_delay(self, bench: Bench) -> None:
        [one] = await ask(bench)
        await bench.end(one, status=S.FAILED)
        found = await bench.database.read(find_execution, one, ALWAYS)
        assert found is not None
        assert (found.status, found.attempt, found.reason) == (S.REQUESTED, 2, "delay")

    async def test_pages_of_a_filtered_list_have_each_of_them_once(self, bench: Bench) -> None:
        ids = await ask(bench, 5)
        for one in ids[1::2]:
            await bench.end(one, status=S.FAILED)
        await bench.flow.pause("a.one", None, "eva")
        ids += await ask(bench, 2)
        wanted = ExecutionFilters(status=S.REQUESTED)
        pages = [
            await bench.database.read(list_executions, wanted, ALWAYS, Window(2, skipped))
            for skipped in (0, 2, 4)
        ]
        assert [one.id for page in pages for one in page] == [ids[6], ids[5], ids[3], ids[1]]


class TestCounters:
    async def test_what_left_the_queue_for_a_worker_has_left_it_however_often_it_returns(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 2)
        seen = [await bench.database.read(queue_counts)]
        await bench.end(ids[0], status=S.FAILED)
        seen.append(await bench.database.read(queue_counts))
        bench.step(10)
        await bench.flow.release_delayed()
        seen.append(await bench.database.read(queue_counts))
        await bench.flow.cancel(ids[0])
        seen.append(await bench.database.read(queue_counts))
        assert [(e.depth, e.active, e.enqueued, e.scheduled) for e in seen] == [
            (1, 1, 2, 1),
            (0, 1, 2, 2),
            (1, 1, 2, 2),
            (0, 1, 2, 2),
        ]

    async def test_one_that_ends_while_it_rests_has_left_its_queue(self, bench: Bench) -> None:
        ids = await ask(bench, 2)
        for one in ids:
            await bench.end(one, status=S.FAILED)
        await bench.flow.cancel(ids[0])
        assert (await bench.lane()).total_completed == 1
        await bench.flow.clear("a.one", None, "eva")
        lane = await bench.lane()
        assert (lane.total_enqueued, lane.total_completed, lane.active_count) == (2, 2, 0)

    async def test_its_band_can_be_changed_and_the_log_tells_so(self, bench: Bench) -> None:
        for place in ("keep", "tail"):
            [one] = await ask(bench, queue_place=place)
            await bench.end(one, status=S.FAILED)
            await bench.flow.reprioritize(one, Priority.HIGH, "eva")
        items = await bench.values(str, "SELECT items::text FROM decision ORDER BY number")
        assert sum(row.count('"priority"') for row in items) == 2
        bench.step(10)
        await bench.flow.release_delayed()
        assert await bench.values(int, "SELECT band FROM entry") == [1, 1]


async def test_an_action_that_is_deleted_while_one_rests_does_not_keep_it_from_its_end(
    bench: Bench,
) -> None:
    [one] = await ask(bench)
    await bench.end(one, status=S.FAILED)
    await bench.database.run(delete_action, "a.one")
    bench.step(10)
    assert await bench.flow.release_delayed() is None
    assert await bench.running() == [one]
    await bench.end(one)
    assert (await bench.execution(one)).status is S.COMPLETED
