"""A rate counts the starts of all attempts, whatever the policies were meanwhile, and nothing that never began."""

from datetime import timedelta

from attune.catalog.retrying import Retry
from attune.kernel.ids import WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.executions.model import Request
from tests.contract.pipeline.bench import Bench

S = ExecutionStatus
ONE_A_MINUTE = {"max_executions": 1, "window_seconds": 60}
ADMITTED = "SELECT count(*) FROM admission WHERE at IS NULL"


async def hand(bench: Bench) -> WorkerId:
    return WorkerId(await bench.value(int, "SELECT min(id) FROM worker"))


async def test_nobody_waits_for_an_attempt_of_his_own_that_failed_under_another_policy(
    bench: Bench,
) -> None:
    await bench.policy(rate_limit=ONE_A_MINUTE)
    [one] = await bench.order([Request(action_ref="a.one", max_retries=1)])
    await bench.change(rate_limit=None, concurrency_limit=1)
    await bench.flow.pause("a.one", None, "eva")
    await bench.end(one.id, status=S.FAILED)
    await bench.change(rate_limit=ONE_A_MINUTE, concurrency_limit=None)
    await bench.flow.resume("a.one", None, "eva")
    assert await bench.waiting() == [one.id]
    bench.step(61)
    await bench.flow.open_gates()
    assert await bench.running() == [one.id]


async def test_an_attempt_that_rests_while_the_rate_comes_back_has_begun_once(bench: Bench) -> None:
    await bench.policy(rate_limit=ONE_A_MINUTE)
    how = Retry(delay=30)
    [one] = await bench.order([Request(action_ref="a.one", max_retries=1, retry=how)])
    await bench.change(rate_limit=None, concurrency_limit=1)
    await bench.end(one.id, status=S.FAILED)
    await bench.change(rate_limit=ONE_A_MINUTE, concurrency_limit=None)
    bench.step(30)
    await bench.flow.release_delayed()
    assert await bench.waiting() == [one.id]
    bench.step(30)
    await bench.flow.open_gates()
    assert await bench.running() == [one.id]


async def test_one_that_gave_its_slot_back_under_another_policy_is_not_waited_for(
    bench: Bench,
) -> None:
    await bench.policy(rate_limit=ONE_A_MINUTE)
    [one] = await bench.ask(flow=bench.new_flow("api", through=False))
    await bench.change(rate_limit=None, concurrency_limit=1)
    await bench.execute("UPDATE entry SET state = 'ready', worker = NULL")
    await bench.execute("UPDATE execution SET status = 'requested', worker = NULL")
    await bench.flow.pause("a.one", None, "eva")
    await bench.change(rate_limit=ONE_A_MINUTE, concurrency_limit=None)
    await bench.flow.resume("a.one", None, "eva")
    assert await bench.running() == [one]


async def test_what_a_worker_hands_back_was_no_start(bench: Bench) -> None:
    await bench.policy(rate_limit=ONE_A_MINUTE)
    [one] = await bench.ask()
    assert await bench.flow.hand_back(await hand(bench), [one]) == 1
    await bench.flow.open_gates()
    await bench.flow.promote()
    assert await bench.running() == [one]
    assert await bench.value(int, ADMITTED) == 1


async def test_what_a_lost_worker_had_may_have_begun_and_counts(bench: Bench) -> None:
    await bench.policy(rate_limit=ONE_A_MINUTE)
    [one] = await bench.ask()
    await bench.flow.take_back(LostWorker(await hand(bench), "hand", cordoned=False), "was lost")
    assert await bench.waiting() == [one]
    bench.step(59)
    await bench.flow.open_gates()
    assert await bench.waiting() == [one]
    bench.step(1)
    opens = await bench.flow.open_gates()
    assert (await bench.running(), opens) == ([one], None)


async def test_every_attempt_s_start_is_one(bench: Bench) -> None:
    await bench.policy(rate_limit={"max_executions": 2, "window_seconds": 60})
    [one] = await bench.order([Request(action_ref="a.one", max_retries=3)])
    begin = bench.clock.now()
    for _ in range(4):
        while await bench.waiting():
            opens = await bench.flow.open_gates()
            if opens is not None:
                bench.step((opens - bench.clock.now()).total_seconds())
        await bench.start(one.id)
        await bench.end(one.id, status=S.FAILED)
        await bench.flow.schedule()
    assert (await bench.execution(one.id)).status is S.FAILED
    assert bench.clock.now() - begin == timedelta(seconds=60)
