"""What operators do to queues: pause, resume, clear, change a priority or a limit that follows its action."""

import pytest

from attune.kernel.errors import Conflict, NotFound
from attune.kernel.ids import ExecutionId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.executions.model import Priority
from attune.pipeline.workers.model import Worker
from tests.contract.pipeline.bench import Bench

S = ExecutionStatus
RED, BLUE = '{"customer":"red"}', '{"customer":"blue"}'


class TestPause:
    async def test_what_runs_goes_on_and_what_waits_stays_until_somebody_resumes(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await bench.ask(count=3)
        await bench.flow.pause("a.one", None, "eva")
        await bench.end(ids[0])
        assert (await bench.running(), await bench.waiting()) == ([], ids[1:])
        assert (await bench.lane()).reason == "pause"
        await bench.flow.resume("a.one", None, "eva")
        assert await bench.running() == ids[1:2]

    async def test_an_action_without_a_policy_that_never_ran_can_be_paused(
        self, bench: Bench
    ) -> None:
        assert await bench.flow.pause("a.one", None, "eva") == 1
        ids = await bench.ask(count=2)
        assert await bench.waiting() == ids
        await bench.flow.resume("a.one", None, "eva")
        assert await bench.running() == ids

    async def test_a_new_group_of_a_paused_action_is_paused(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        await bench.flow.pause("a.one", None, "eva")
        red = await bench.ask(customer="red")
        assert (await bench.waiting(), await bench.running()) == (red, [])
        await bench.flow.resume("a.one", None, "eva")
        blue = await bench.ask(customer="blue")
        assert await bench.running() == [*red, *blue]

    async def test_one_group_is_paused_and_the_others_are_not(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        red = await bench.ask(count=2, customer="red")
        assert await bench.flow.pause("a.one", RED, "eva") == 1
        blue = await bench.ask(count=2, customer="blue")
        await bench.end(red[0], blue[0])
        assert (await bench.running(), await bench.waiting()) == (blue[1:], red[1:])
        await bench.flow.resume("a.one", RED, "eva")
        assert await bench.waiting() == []

    async def test_an_action_that_never_ran_can_be_paused_under_a_quota_of_each_identity(
        self, bench: Bench
    ) -> None:
        quota = {"quota_type": "running_executions", "limit": 1, "per": "identity"}
        await bench.policy(quotas=[quota])
        await bench.flow.pause("a.one", None, "eva")
        ids = await bench.ask(executor=7)
        assert await bench.waiting() == ids
        await bench.flow.resume("a.one", None, "eva")
        assert await bench.running() == ids

    async def test_a_group_that_can_never_be_is_refused_and_leaves_no_lane(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        for group in ("red", '{"colour":"red"}', "[]"):
            with pytest.raises(NotFound, match="group"):
                await bench.flow.pause("a.one", group, "eva")
        assert await bench.lanes() == []
        await bench.change(concurrency_limit=2)

    async def test_the_pause_stays_when_the_policy_changes(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        await bench.flow.pause("a.one", None, "eva")
        ids = await bench.ask(count=2, customer="red")
        await bench.change(concurrency_parameters=["customer"], concurrency_limit=5)
        assert (await bench.running(), await bench.waiting()) == ([], ids)
        assert (await bench.lane(group=RED)).reason == "pause"
        await bench.flow.resume("a.one", None, "eva")
        assert await bench.running() == ids


class TestClear:
    async def test_what_waits_ends_as_cancelled_and_what_runs_goes_on(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await bench.ask(count=4)
        assert await bench.flow.clear("a.one", None, "eva") == 3
        status, text = await bench.error(ids[3])
        assert (status, text) == (S.CANCELLED, "The queue was cleared by eva.")
        assert await bench.running() == ids[:1]
        assert await bench.flow.clear("a.one", None, "eva") == 0

    async def test_one_group_is_cleared_and_the_others_are_not(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        red = await bench.ask(count=3, customer="red")
        blue = await bench.ask(count=2, customer="blue")
        assert await bench.flow.clear("a.one", RED, "eva") == 2
        assert (await bench.running(), await bench.waiting()) == ([red[0], blue[0]], blue[1:])

    async def test_more_than_one_transaction_takes_are_all_cleared(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=0)
        await bench.ask(count=1100)
        assert await bench.flow.clear("a.one", None, "eva") == 1100
        assert (await bench.lane()).queue_length == 0


class TestReprioritize:
    async def test_it_goes_to_the_place_that_its_number_has_in_the_other_band(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=0)
        high = Priority.HIGH
        first, second, third = [(await bench.ask())[0] for _ in range(3)]
        [fourth] = await bench.ask(priority=high)
        await bench.flow.reprioritize(second, high, "eva")
        await bench.flow.reprioritize(first, Priority.LOW, "eva")
        assert await bench.waiting() == [second, fourth, third, first]
        await bench.change(concurrency_limit=1)
        for one in (second, fourth, third, first):
            assert await bench.running() == [one]
            await bench.end(one)

    async def test_what_a_worker_has_or_what_is_not_there_is_refused(self, bench: Bench) -> None:
        [handed] = await bench.ask()
        with pytest.raises(Conflict, match="no longer waits"):
            await bench.flow.reprioritize(handed, Priority.HIGH, "eva")
        with pytest.raises(NotFound, match="no execution 4711"):
            await bench.flow.reprioritize(ExecutionId(4711), Priority.HIGH, "eva")

    async def test_f13_the_band_survives_when_the_execution_is_queued_again(
        self, bench: Bench
    ) -> None:
        """First while it waits for a slot, then for a worker; then its worker is lost."""
        api = bench.new_flow("api", through=False)
        await bench.flow.pause("a.one", None, "eva")
        [first] = await bench.ask(flow=api)
        [second] = await bench.ask(flow=api)
        await bench.flow.reprioritize(second, Priority.CRITICAL, "eva")
        await bench.flow.resume("a.one", None, "eva")
        hand = await bench.value(int, "SELECT id FROM worker")
        lost = LostWorker(hand, "hand", cordoned=False)
        await bench.execute("UPDATE worker SET status = 'inactive'")
        assert await api.take_back(lost, "was lost") == 2
        states = await bench.values(
            ExecutionId, "SELECT execution FROM entry WHERE state = 'ready' ORDER BY band, sequence"
        )
        assert states == [second, first]
        assert (await bench.execution(second)).priority is Priority.CRITICAL
        worker: Worker = await bench.come("other", 1)
        await bench.flow.schedule()
        handed = "SELECT execution FROM entry WHERE worker = :id"
        assert await bench.values(int, handed, id=worker.id) == [second]

    async def test_one_that_waits_for_a_worker_passes_the_others_that_do(
        self, bench: Bench
    ) -> None:
        await bench.execute("UPDATE worker SET capacity = 1")
        first, second, third = await bench.ask(count=3)
        await bench.flow.reprioritize(third, Priority.HIGH, "eva")
        assert await bench.end(first) == [third]
        assert await bench.end(third) == [second]


class TestChangeLimit:
    async def test_a_limit_that_follows_its_action_is_raised_for_the_next_at_once(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit="auto", concurrency_floor=1, concurrency_ceiling=9)
        ids = await bench.ask(count=4)
        assert await bench.running() == ids[:1]
        lane = LaneId((await bench.lane()).id)
        await bench.flow.change_limit(lane, 3, "it is quick")
        assert await bench.running() == ids[:3]
        await bench.change(tags=["x"])
        assert (await bench.lane()).max_concurrent == 3

    async def test_the_limit_of_a_plain_policy_is_not_touched(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await bench.ask(count=2)
        await bench.flow.change_limit(LaneId((await bench.lane()).id), 5, "it is quick")
        assert await bench.waiting() == ids[1:]
