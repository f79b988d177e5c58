"""What an execution waited for, from its joining to its start, by reason."""

from datetime import timedelta

from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import GateName
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.whys import told_history, waits, why

G = GateName
S = ExecutionStatus


async def test_it_goes_from_pause_to_concurrency_to_worker_to_the_end(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    api = bench.new_flow("api", through=False)
    await bench.flow.pause("a.one", None, "olga")
    first, second = await bench.ask(count=2)
    bench.step(10)
    assert await waits(bench, second) == [(G.PAUSE, 0, None)]
    await bench.flow.resume("a.one", None, "olga")
    bench.step(20)
    assert await waits(bench, first) == [(G.PAUSE, 0, 10)]
    assert await waits(bench, second) == [(G.PAUSE, 0, 10), (G.CONCURRENCY, 10, None)]
    await bench.execute("UPDATE worker SET capacity = 0")
    await bench.end(first, flow=api)
    bench.step(5)
    so_far = [(G.PAUSE, 0, 10), (G.CONCURRENCY, 10, 30)]
    assert await waits(bench, second) == [*so_far, (G.WORKER, 30, None)]
    await bench.execute("UPDATE worker SET capacity = 9")
    await bench.flow.schedule()
    bench.step(1)
    assert await waits(bench, second) == [*so_far, (G.WORKER, 30, 35)]
    await bench.start(second)
    await bench.end(second, seconds=0)
    bench.step(3600)
    assert await waits(bench, second) == [*so_far, (G.WORKER, 30, 36)]
    found = await told_history(bench, second)
    assert [each.status for each in found.statuses] == [S.REQUESTED, S.RUNNING, S.COMPLETED]
    assert list(found.waits) == list((await why(bench, second)).history)


async def test_one_that_was_cancelled_in_the_queue_waited_until_then(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    [_, waiting] = await bench.ask(count=2)
    bench.step(7)
    await bench.flow.cancel(waiting)
    bench.step(7)
    assert await waits(bench, waiting) == [(G.CONCURRENCY, 0, 7)]
    found = await told_history(bench, waiting)
    assert [each.status for each in found.statuses] == [S.REQUESTED, S.CANCELLED]


async def test_it_goes_on_in_the_queue_to_which_a_policy_moved_it(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    [first] = await bench.ask(customer="x")
    [second] = await bench.ask(customer="y")
    [third] = await bench.ask(customer="x")
    bench.step(10)
    await bench.change(concurrency_parameters=["customer"])
    bench.step(5)
    assert await waits(bench, second) == [(G.CONCURRENCY, 0, 10)]
    assert await waits(bench, third) == [(G.CONCURRENCY, 0, None)]
    await bench.end(first, seconds=None)
    assert await waits(bench, third) == [(G.CONCURRENCY, 0, 15)]


async def test_a_change_of_priority_does_not_interrupt_it(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    [_, second] = await bench.ask(count=2)
    bench.step(3)
    await bench.flow.reprioritize(second, Priority.HIGH, "olga")
    bench.step(3)
    assert await waits(bench, second) == [(G.CONCURRENCY, 0, None)]


async def test_work_taken_back_waits_for_a_worker_since_then(bench: Bench) -> None:
    [one] = await bench.ask()
    bench.step(100)
    api = bench.new_flow("api", through=False, stale=timedelta(seconds=100))
    assert await api.take_back_from_silent() == 1
    bench.step(5)
    assert await waits(bench, one) == [(G.WORKER, 100, None)]


async def test_a_wait_of_which_the_log_knows_nothing_still_has_its_reason(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    first, second = await bench.ask(count=2)
    await bench.execute("DELETE FROM decision")
    bench.step(5)
    assert await waits(bench, second) == [(G.CONCURRENCY, 0, None)]
    assert await waits(bench, first) == []
