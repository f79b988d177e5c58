"""Who waits too long ends as timeout and is told why; who waits on purpose is left alone."""

from attune.catalog.steps.actions import ActionChanges, update_action
from attune.kernel.ids import WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.executions.model import Priority
from tests.contract.pipeline.bench import Bench

S = ExecutionStatus


async def test_f14_what_waited_too_long_for_a_slot_ends_as_timeout_with_its_reason(
    bench: Bench,
) -> None:
    await bench.set(queue_timeout_seconds=60)
    await bench.policy(concurrency_limit=1)
    ids = await bench.ask(count=3)
    bench.step(30)
    young = await bench.ask(priority=Priority.HIGH)
    bench.step(30)
    assert await bench.flow.expire() == 2
    for one in ids[1:]:
        status, text = await bench.error(one)
        assert status is S.TIMEOUT
        assert "queue of a.one" in text
        assert "queue_timeout_seconds (60 s)" in text
        assert "it waited for concurrency" in text
    assert (await bench.running(), await bench.waiting()) == (ids[:1], young)


async def test_f14_what_waited_too_long_for_a_worker_does_too_and_its_slot_goes_on(
    bench: Bench,
) -> None:
    await bench.execute("UPDATE worker SET capacity = 1")
    await bench.policy(concurrency_limit=2)
    first, second = await bench.ask(count=2)
    bench.step(1)
    [third] = await bench.ask()
    bench.step(3599)
    assert await bench.flow.expire() == 1
    status, text = await bench.error(second)
    assert (status, "it waited for worker" in text) == (S.TIMEOUT, True)
    assert (await bench.running(), await bench.waiting()) == ([first, third], [])


async def test_f14_more_than_one_transaction_takes_all_end(bench: Bench) -> None:
    await bench.policy(concurrency_limit=0)
    await bench.ask(count=600)
    await bench.ask(count=600, priority=Priority.BACKGROUND)
    bench.step(3600)
    assert await bench.flow.expire() == 1200
    assert (await bench.lane()).queue_length == 0


async def test_f15_whoever_waits_less_than_that_waits_on_in_its_place(bench: Bench) -> None:
    await bench.policy(concurrency_limit=0)
    ids = await bench.ask(count=3)
    for _ in range(10):
        bench.step(359)
        assert await bench.flow.expire() == 0
        await bench.flow.promote()
    assert await bench.waiting() == ids


async def test_f15_what_runs_for_long_and_what_is_tried_again_are_left_alone(bench: Bench) -> None:
    changes = ActionChanges(max_retries=3)
    await bench.database.run(update_action, "a.one", changes, bench.clock.now())
    first, second = await bench.ask(count=2)
    await bench.start(first, second)
    bench.step(7200)
    assert await bench.flow.expire() == 0
    hand = WorkerId(await bench.value(int, "SELECT id FROM worker"))
    apart = bench.new_flow("other", through=False)
    await bench.execute("UPDATE worker SET cordoned = true")
    assert await apart.take_back(LostWorker(hand, "hand", cordoned=True), "was lost") == 2
    assert await bench.flow.expire() == 0
    states = await bench.values(str, "SELECT state FROM entry")
    assert states == ["ready", "ready"]


async def test_the_time_of_the_configuration_holds_where_no_setting_is_made(bench: Bench) -> None:
    await bench.policy(concurrency_limit=0)
    await bench.ask()
    bench.step(3599.9)
    assert await bench.flow.expire() == 0
    bench.step(0.1)
    assert await bench.flow.expire() == 1
