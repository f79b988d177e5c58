"""Order and limits of a lane, with real workers, several executors and workers that vanish."""

import asyncio

from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.world import World, eventually

S = ExecutionStatus


async def started_in_order(world: World) -> list[int]:
    return await world.values(
        int, "SELECT id FROM execution WHERE started_at IS NOT NULL ORDER BY started_at, id"
    )


async def test_under_a_limit_of_one_executions_start_in_the_order_of_their_acceptance(
    world: World,
) -> None:
    await world.limit("core.noop", 1)
    order = Order(tuple(Request(action_ref="core.noop") for _ in range(40)))
    first = await world.flow.request(order)
    second = await world.flow.request(order)
    await world.over()
    ids = [execution.id for execution in (*first, *second)]
    assert await started_in_order(world) == ids


async def test_a_limit_is_never_exceeded_and_what_waits_says_so(world: World) -> None:
    await world.limit("core.sleep", 2)
    request = Request(action_ref="core.sleep", parameters={"seconds": 0.3})
    await world.flow.request(Order((request,) * 6))
    waiting = "SELECT count(*) FROM entry WHERE state = 'queued' AND reason = 'concurrency'"
    assert await world.value(int, waiting) == 4
    seen: list[int] = []
    while await world.value(int, "SELECT count(*) FROM entry"):
        seen.append(await world.value(int, "SELECT count(*) FROM entry WHERE state <> 'queued'"))
        await asyncio.sleep(0.01)
    assert max(seen) == 2
    assert await world.value(int, "SELECT active_count + queue_length FROM lane") == 0


async def test_a_higher_band_goes_first_and_keeps_its_own_order(world: World) -> None:
    await world.limit("core.noop", 0)
    words = [Priority.LOW, Priority.HIGH, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL]
    requests = tuple(Request(action_ref="core.noop", priority=word) for word in words)
    executions = await world.flow.request(Order(requests))
    await world.limit("core.noop", 1)
    await world.executor_flow.promote()
    await world.over()
    low, high, normal, high_too, critical = (execution.id for execution in executions)
    assert await started_in_order(world) == [critical, high, high_too, normal, low]


async def test_a_limit_of_zero_holds_everything_and_raising_it_lets_it_go(world: World) -> None:
    await world.limit("core.noop", 0)
    execution = await world.run("core.noop")
    assert (await world.execution(execution.id)).status is S.REQUESTED
    await world.limit("core.noop", 5)
    await world.executor_flow.promote()
    assert (await world.ended(execution.id)).status is S.COMPLETED


async def test_f16_order_is_that_of_the_commits_not_of_the_ids(still: World) -> None:
    """Ids are given before the lane's lock is taken, so a later id may well be committed first."""
    await still.limit("core.noop", 0)
    flows = [still.new_flow(f"api {n}", through=False) for n in range(4)]
    request = Request(action_ref="core.noop")
    await asyncio.gather(*(flow.request(Order((request,))) for flow in flows for _ in range(25)))
    sequences = await still.values(int, "SELECT sequence FROM entry ORDER BY enqueued_at, sequence")
    assert sequences == list(range(1, 101))
    await still.start_worker()
    await still.limit("core.noop", 1)
    by_sequence = await still.values(int, "SELECT execution FROM entry ORDER BY sequence")
    await still.flow.promote()
    await still.over()
    assert await started_in_order(still) == by_sequence


async def test_f21_several_executors_hand_each_execution_over_once(still: World) -> None:
    api = still.new_flow("api", through=False)
    request = Request(action_ref="core.noop")
    await api.request(Order((request,) * 60))
    await still.start_worker("one")
    await still.start_worker("two")
    executors = [still.new_flow(f"executor {n}", through=True) for n in range(3)]
    await asyncio.gather(*(executor.schedule() for executor in executors for _ in range(4)))
    await still.over()
    assert await still.value(int, "SELECT count(*) FROM execution WHERE attempt > 1") == 0
    ended = "SELECT count(*) FROM execution WHERE status = 'completed'"
    assert await still.value(int, ended) == 60
    assert await still.value(int, "SELECT total_completed FROM lane") == 60


async def test_no_worker_gets_more_than_its_capacity(still: World) -> None:
    await still.start_worker("one", capacity=3)
    await still.start_worker("two", capacity=2)
    request = Request(action_ref="core.sleep", parameters={"seconds": 30})
    executions = await still.flow.request(Order((request,) * 9))
    per_worker = "SELECT count(*) FROM entry WHERE state = 'handed' GROUP BY worker ORDER BY 1"
    assert await still.values(int, per_worker) == [2, 3]
    waiting = "SELECT count(*) FROM entry WHERE state = 'ready' AND reason = 'worker'"
    assert await still.value(int, waiting) == 4
    for execution in executions:
        await still.flow.cancel(execution.id)
    await still.over()


async def test_a_cancelled_head_gives_its_slot_to_the_next(world: World) -> None:
    await world.limit("core.sleep", 1)
    request = Request(action_ref="core.sleep", parameters={"seconds": 0.1})
    long = Request(action_ref="core.sleep", parameters={"seconds": 60})
    first, second, third = await world.flow.request(Order((long, long, request)))
    assert (await world.flow.cancel(second.id)).status is S.CANCELLED
    await world.flow.cancel(first.id)
    assert (await world.ended(third.id)).status is S.COMPLETED


class TestALostWorker:
    async def test_what_it_had_not_begun_goes_to_another_and_what_it_ran_is_abandoned(
        self, still: World
    ) -> None:
        dead = await still.start_worker("dead")
        ran = await still.run("core.sleep", seconds=60)

        async def running() -> bool:
            return (await still.execution(ran.id)).status is S.RUNNING

        await eventually(running)
        service = dead._service
        assert service is not None
        await service._subscription.cancel()  # type: ignore[union-attr]
        waiting = await still.run("core.noop")
        await still.execute(
            "UPDATE worker SET last_heartbeat = :then", then=still.clock.now().replace(year=2020)
        )
        await still.start_worker("alive")
        assert await still.flow.take_back_from_silent() == 2
        await still.flow.schedule()
        ended = await still.ended(waiting.id)
        assert (ended.status, ended.attempt) == (S.COMPLETED, 2)
        abandoned = await still.ended(ran.id)
        assert abandoned.status is S.ABANDONED
        assert abandoned.result is not None
        assert abandoned.result["original_status"] == "running"
        assert abandoned.result["worker"]["name"] == "dead"

    async def test_a_late_end_of_an_old_attempt_changes_nothing(self, still: World) -> None:
        worker = await still.start_worker("slow")
        execution = await still.run("core.sleep", seconds=1)
        jobs = worker._service._jobs  # type: ignore[union-attr]

        async def begun() -> bool:
            return jobs.holds(execution.id, 1)

        await eventually(begun)
        await still.execute("UPDATE entry SET attempt = 2")
        await still.execute("UPDATE execution SET attempt = 2")
        await asyncio.wait_for(jobs.finished(), 20)
        assert (await still.execution(execution.id)).status not in TERMINAL
        assert await still.value(int, "SELECT active_count FROM lane") == 1
        await still.execute("DELETE FROM entry")

    async def test_a_worker_that_comes_again_under_its_name_takes_back_what_it_held(
        self, still: World
    ) -> None:
        first = still.worker("same")
        await first.start()
        await first._service._subscription.cancel()  # type: ignore[union-attr]
        execution = await still.run("core.noop")
        assert (await still.execution(execution.id)).status is S.SCHEDULED
        for task in first._service._tasks:  # type: ignore[union-attr]
            task.cancel()
        await still.start_worker("same")
        await still.flow.schedule()
        ended = await still.ended(execution.id)
        assert (ended.status, ended.attempt) == (S.COMPLETED, 2)


class TestF22:
    """An executor that dies between two steps leaves rows from which the next pass goes on."""

    async def test_f22_after_the_claim_and_before_the_publish(self, still: World) -> None:
        """The hand-off is committed and its message is lost: the worker finds it in its rows."""
        worker = await still.start_worker()
        service = worker._service
        assert service is not None
        await service._subscription.cancel()  # type: ignore[union-attr]
        execution = await still.run("core.noop")
        assert (await still.execution(execution.id)).status is S.SCHEDULED
        await service.look()
        assert (await still.ended(execution.id)).attempt == 1

    async def test_f22_after_the_publish_and_before_the_commit(self, still: World) -> None:
        """A message for a hand-off that was rolled back: the worker finds nothing that is its own."""
        worker = await still.start_worker()
        await still.limit("core.noop", 0)
        execution = await still.run("core.noop")
        await worker._service._begin([execution.id])  # type: ignore[union-attr]
        assert (await still.execution(execution.id)).status is S.REQUESTED
        assert await still.value(int, "SELECT count(*) FROM entry WHERE state = 'queued'") == 1

    async def test_f22_after_the_release_and_before_the_promotion(self, still: World) -> None:
        """There is no such moment: both are one transaction. A slot that stands free is filled by the next pass."""
        await still.limit("core.noop", 0)
        executions = await still.flow.request(Order((Request(action_ref="core.noop"),) * 3))
        await still.limit("core.noop", 1, told=False)
        await still.start_worker()
        await still.start_executor()
        for execution in executions:
            assert (await still.ended(execution.id)).status is S.COMPLETED
