"""Failures of order and limits that engines of this kind have had, each by its number.

Others stand where their subject is: F1 also in test_shared_limits, test_policy_change and test_system_cap, F8 in
test_plans, F9 and F10 in test_policy_effects, F12 in test_policy_change, F13 in test_queue_control, F14 and F15 in
test_long_waits, F16 and F21 in test_queues.
"""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec

from attune.kernel.envelope import Stamp
from attune.kernel.messages import ExecutionCompleted, MessageType
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World, eventually

S = ExecutionStatus


async def test_f1_two_executors_that_admit_at_once_never_exceed_the_limit(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    flows = [bench.new_flow(f"executor {n}", through=True) for n in range(4)]
    orders = [Order((Request(action_ref="a.one"),)) for _ in range(8)]
    await asyncio.gather(*(flow.request(order) for flow in flows for order in orders))
    await asyncio.gather(*(flow.promote() for flow in flows for _ in range(3)))
    assert (len(await bench.running()), len(await bench.waiting())) == (1, 31)


async def test_f2_the_freed_slot_belongs_to_the_head_whoever_comes_meanwhile(bench: Bench) -> None:
    """No worker takes the head yet; a later one of a higher band comes and finds the slot given."""
    await bench.policy(concurrency_limit=1)
    first, head = await bench.ask(count=2)
    await bench.execute("UPDATE worker SET cordoned = true")
    assert await bench.end(first) == []
    apart = bench.new_flow("api", through=False)
    late = await bench.ask(priority=Priority.CRITICAL, flow=apart)
    assert (await bench.running(), await bench.waiting()) == ([head], late)


async def test_f3_a_restart_loses_nobody_and_no_order(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    words = [Priority.NORMAL, Priority.LOW, Priority.HIGH, Priority.NORMAL]
    [first] = await bench.ask()
    normal, low, high, normal_too = [(await bench.ask(priority=word))[0] for word in words]
    await bench.database.close()
    await bench.database.open()
    bench.flow = bench.new_flow("after the restart", through=True)
    order = [first, high, normal, normal_too, low]
    for one in order:
        assert await bench.running() == [one]
        await bench.end(one)


async def test_f4_the_slot_is_freed_whichever_executor_hears_of_the_end(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    first, second = await bench.ask(count=2)
    other = bench.new_flow("other", through=True)
    assert await bench.end(first, flow=other) == [second]
    assert (await bench.lane()).total_completed == 1


async def test_f5_an_end_that_is_told_twice_frees_one_slot(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    ids = await bench.ask(count=3)
    word = await bench.word(ids[0], S.COMPLETED, bench.clock.now())
    assert (await bench.complete(word)).late == frozenset()
    again = await bench.complete(word, flow=bench.new_flow("other", through=True))
    assert again.late == {ids[0]}
    changed = msgspec.structs.replace(word, status=S.FAILED)
    assert (await bench.complete(changed)).late == {ids[0]}
    assert (await bench.running(), await bench.waiting()) == (ids[1:2], ids[2:])
    assert (await bench.lane()).total_completed == 1


async def test_f5_a_late_word_beside_the_true_one_takes_nothing_from_it(bench: Bench) -> None:
    """Both attempts of one execution, in one batch of one worker, in whatever order."""
    ids = await bench.ask(count=2)
    for one, late_comes_first in zip(ids, (True, False), strict=True):
        old = await bench.word(one, S.FAILED, bench.clock.now())
        await bench.execute("UPDATE execution SET attempt = 2 WHERE id = :id", id=one)
        await bench.execute("UPDATE entry SET attempt = 2 WHERE execution = :id", id=one)
        true = msgspec.structs.replace(old, attempt=2, status=S.COMPLETED)
        words = (old, true) if late_comes_first else (true, old)
        assert (await bench.complete(*words)).late == {one}
        assert (await bench.execution(one)).status is S.COMPLETED
    assert (await bench.lane()).total_completed == 2


async def test_f5_an_end_that_may_not_follow_frees_nothing(bench: Bench) -> None:
    """Nobody has asked for this cancel, and it runs."""
    [one] = await bench.ask()
    await bench.start(one)
    word = await bench.word(one, S.CANCELLED, bench.clock.now())
    assert (await bench.complete(word)).late == {one}
    assert (await bench.execution(one)).status is S.RUNNING
    assert await bench.running() == [one]


async def test_f5_a_message_of_an_end_that_is_false_or_repeated_frees_nothing(
    proved: World,
) -> None:
    await proved.policy("core.one", over="core.sleep", concurrency_limit=1)
    request = Request(action_ref="core.sleep", parameters={"seconds": 30})
    runs, waits = await proved.flow.request(Order((request, request)))
    stamp = Stamp("worker:liar", proved.clock, proved.ids)
    for one in (runs, runs, waits):
        item = ExecutionCompleted(
            execution_id=one.id,
            action_id=one.action or 0,  # type: ignore[arg-type]
            action_ref=one.action_ref,
            status=S.COMPLETED,
            completed_at=proved.clock.now(),
        )
        await proved.bus.publish(stamp.envelope(MessageType.EXECUTION_COMPLETED, item))
    after = await proved.run("core.noop")
    await proved.ended(after.id)
    assert await proved.value(int, "SELECT execution FROM entry WHERE state = 'queued'") == waits.id
    for one in (waits, runs):
        await proved.flow.cancel(one.id)
    await proved.over()


async def test_f6_a_start_that_fails_gives_the_slot_back(bench: Bench) -> None:
    """Nobody can run the first; its slot goes to the second."""
    await bench.policy(concurrency_limit=1)
    selector = {"zone": "moon"}
    first, second = await bench.order(
        [Request(action_ref="a.one", worker_selector=selector), Request(action_ref="a.one")]
    )
    status, text = await bench.error(first.id)
    assert (status, "no workers available" in text) == (S.FAILED, True)
    assert await bench.running() == [second.id]


async def test_f6_a_worker_that_cannot_start_it_gives_the_slot_back(proved: World) -> None:
    await proved.policy("core.one", over="core.http_request", concurrency_limit=1)
    bad = Request(action_ref="core.http_request", parameters={"url": "nowhere://"})
    made = await proved.flow.request(Order((bad,) * 3))
    await proved.over()
    ends = [(await proved.execution(one.id)).status for one in made]
    assert S.REQUESTED not in ends


async def test_f7_the_oldest_waiter_starts_within_a_second_of_the_slot_that_frees(
    proved: World,
) -> None:
    """Fifty runs under a limit of ten: the tenth from last never waits on anybody's poll."""
    await proved.policy("core.ten", over="core.noop", concurrency_limit=10)
    made = await proved.flow.request(Order((Request(action_ref="core.noop"),) * 50))
    await proved.over()
    rows = [await proved.execution(one.id) for one in made]
    starts = [one.started_at for one in rows]
    ends = sorted(one.updated for one in rows)
    assert starts == sorted(_known(starts))
    waits = [start - end for start, end in zip(_known(starts)[10:], ends, strict=False)]
    assert max(waits) < timedelta(seconds=1)


def _known(moments: list[datetime | None]) -> list[datetime]:
    return [one for one in moments if one is not None]


async def test_f12_a_limit_of_one_runs_one_and_then_the_next(proved: World) -> None:
    await proved.policy("core.one", over="core.noop", concurrency_limit=1)
    made = await proved.flow.request(Order((Request(action_ref="core.noop"),) * 10))
    await proved.over()
    rows = [await proved.execution(one.id) for one in made]
    for before, after in pairwise(rows):
        assert after.started_at is not None
        assert after.started_at >= before.updated

    async def nobody_holds() -> bool:
        return bool(await proved.value(int, "SELECT sum(active_count) FROM lane") == 0)

    await eventually(nobody_holds)


async def test_f11_parents_that_wait_hold_no_slot_of_a_worker(bench: Bench) -> None:
    """Only what a worker has counts against it, so the children of any number of parents that wait find room."""
    await bench.policy(concurrency_limit=0)
    parents = await bench.ask(count=50)
    [child] = await bench.order([Request(action_ref="a.two", parent=parents[0])])
    assert await bench.waiting("a.one") == parents
    assert await bench.running("a.two") == [child.id]
    loads = await bench.values(int, "SELECT count(*) FROM entry WHERE worker IS NOT NULL")
    assert loads == [1]
    await bench.end(child.id)
    assert (await bench.execution(child.id)).parent == parents[0]
