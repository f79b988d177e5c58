"""Executors and workers that deal with the same attempt at once: one of them does, the others find nothing to do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from attune.catalog.retrying import Retry
from attune.catalog.steps.policies import PolicyChanges, update_policy
from attune.kernel.configuration import load_settings
from attune.kernel.errors import Conflict
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.flow import Flow
from tests.contract.pipeline.attempts import Attempt, AttemptBench

S = ExecutionStatus
LEASE: Final = 300
ROUNDS: Final = 12
RETRIES: Final = 3


@pytest.fixture
async def bench(bench_url: str, tmp_path: Path) -> AsyncIterator[AttemptBench]:
    """On PostgreSQL, where transactions really run beside each other."""
    environ = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": bench_url}
    async with AttemptBench(load_settings(environ)) as bench:
        await bench.empty()
        await bench.policy(concurrency_limit=2)
        yield bench
        await bench.check()
        await bring_to_an_end(bench)


@pytest.fixture
def flows(bench: AttemptBench) -> list[Flow]:
    return [bench.new_flow(f"executor {n}", through=True) for n in range(3)]


async def bring_to_an_end(bench: AttemptBench) -> None:
    while (
        await bench.value(int, "SELECT count(*) FROM entry") or await bench.flow.release_delayed()
    ):
        bench.step(60)
        await bench.flow.release_delayed()
        await bench.flow.schedule()
        for one in await bench.handed():
            await bench.say(one, S.COMPLETED, began=True)
    await bench.check()
    assert {one.status for one in (await bench.standing()).values()} <= TERMINAL
    assert {(e.queue_length, e.active_count) for e in await bench.lanes()} == {(0, 0)}


async def ask(bench: AttemptBench, count: int = 1, **how: Any) -> list[ExecutionId]:
    request = Request(action_ref="a.one", max_retries=RETRIES, retry=Retry(**how))
    return [one.id for one in await bench.order([request] * count)]


async def handed(bench: AttemptBench, execution: ExecutionId) -> Attempt:
    [found] = [one for one in await bench.handed() if one.execution == execution]
    return found


async def resting(bench: AttemptBench, **how: Any) -> ExecutionId:
    """One whose first attempt has failed, and whose delay is over."""
    [one] = await ask(bench, **{"delay": 10, **how})
    await bench.say(await handed(bench, one), S.FAILED, began=True)
    bench.step(10)
    return one


async def at_once(bench: AttemptBench, deeds: Iterable[Awaitable[Any]]) -> list[Any]:
    """What each came to; a conflict is what the later one may meet, and nothing else."""
    done = await asyncio.gather(*deeds, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException) and not isinstance(each, Conflict):
            raise each
    await bench.check()
    return done


async def leave(bench: AttemptBench, execution: ExecutionId) -> None:
    """So that the next round begins with an empty lane."""
    now = await bench.execution(execution)
    if now.status in TERMINAL:
        return
    after = await bench.flow.cancel(execution)
    if after.status is S.CANCELING:
        await bench.say(await handed(bench, execution), S.CANCELLED, began=False)


@pytest.mark.parametrize("place", ["keep", "tail"])
async def test_a_wish_to_cancel_meets_the_return_from_a_delay(
    bench: AttemptBench, flows: list[Flow], place: str
) -> None:
    """Whoever comes first: it is cancelled, or will be, and comes back once at most."""
    for _ in range(ROUNDS):
        one = await resting(bench, queue_place=place)
        await at_once(
            bench, [flows[0].release_delayed(), flows[1].cancel(one), flows[2].release_delayed()]
        )
        assert (await bench.execution(one)).status in {S.CANCELLED, S.CANCELING}
        assert await bench.value(int, "SELECT count(*) FROM delay") == 0
        if await bench.handed():
            await bench.say(await handed(bench, one), S.CANCELLED, began=False)


async def test_several_bring_back_what_is_due_and_each_comes_back_once(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    await bench.change(concurrency_limit=5)
    ids = await ask(bench, 5, delay=10)
    for one in await bench.handed():
        await bench.say(one, S.FAILED, began=True)
    bench.step(10)
    await at_once(bench, [flow.release_delayed() for flow in flows])
    assert await bench.running() == ids
    returned = await bench.values(str, "SELECT items::text FROM decision")
    assert sum(row.count('"returned"') for row in returned) == len(ids)


async def test_a_change_of_priority_meets_the_return_from_a_delay(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    """It waits before and afterwards, so nobody is told that it does not, unless a worker has it by then."""
    for number in range(ROUNDS):
        one = await resting(bench)
        await bench.flow.pause("a.one", None, "eva")
        band = list(Priority)[number % len(Priority)]
        [_, told] = await at_once(
            bench, [flows[0].release_delayed(), flows[1].reprioritize(one, band, "eva")]
        )
        assert told is None
        assert (await bench.execution(one)).priority is band
        assert await bench.values(int, "SELECT band FROM entry") == [band]
        await leave(bench, one)
        await bench.flow.resume("a.one", None, "eva")


async def test_a_cleared_queue_meets_the_return_from_a_delay(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    for _ in range(ROUNDS):
        one = await resting(bench)
        await bench.flow.pause("a.one", None, "eva")
        [_, ended] = await at_once(
            bench, [flows[0].release_delayed(), flows[1].clear("a.one", None, "eva")]
        )
        assert ended == 1
        assert (await bench.execution(one)).status is S.CANCELLED
        await bench.flow.resume("a.one", None, "eva")


async def test_a_start_meets_the_monitor_of_those_that_do_not_start(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    """F20: either it runs and is left alone, or the attempt is over and the start counts for nothing."""
    for _ in range(ROUNDS):
        [one] = await ask(bench, delay=1000)
        attempt = await handed(bench, one)
        bench.step(LEASE)
        [began, *ended] = await at_once(
            bench,
            [bench.begin(attempt), flows[0].fail_unbegun(), flows[1].fail_unbegun()],
        )
        assert began + sum(ended) == 1
        now = await bench.execution(one)
        assert (now.status, now.attempt) == ((S.RUNNING, 1) if began else (S.REQUESTED, 2))
        await leave(bench, one)


async def test_two_monitors_and_a_dead_letter_end_an_attempt_once(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    for _ in range(ROUNDS):
        [one] = await ask(bench, delay=1000)
        bench.step(LEASE)
        done = await at_once(
            bench,
            [
                flows[0].fail_unbegun(),
                flows[1].fail_unbegun(),
                flows[2].fail_expired({one: 1}),
                bench.flow.fail_expired({one: 1}),
            ],
        )
        assert sum(done) == 1
        assert (await bench.execution(one)).attempt == 2
        told = "SELECT count(*) FROM worker_history WHERE event = 'not_started' AND execution = :id"
        assert await bench.value(int, told, id=one) == 1
        await leave(bench, one)


async def test_a_start_meets_the_loss_of_its_worker(bench: AttemptBench, flows: list[Flow]) -> None:
    """Without retries: what was seen to run must not run again, and what runs again was not seen to."""
    for _ in range(2 * ROUNDS):
        [one] = await bench.ask()
        attempt = await handed(bench, one)
        [began, _] = await at_once(
            bench, [bench.begin(attempt), bench.lose(attempt.worker, flows[0])]
        )
        now = await bench.execution(one)
        assert (now.status, now.attempt) == ((S.ABANDONED, 1) if began else (S.SCHEDULED, 2))
        await leave(bench, one)


@pytest.mark.parametrize("status", [S.COMPLETED, S.FAILED])
async def test_an_end_meets_the_loss_of_its_worker(
    bench: AttemptBench, flows: list[Flow], status: ExecutionStatus
) -> None:
    """F19: the word counts, or another attempt does; never both."""
    for _ in range(ROUNDS):
        [one] = await ask(bench, delay=1000)
        attempt = await handed(bench, one)
        await bench.begin(attempt)
        [done, *_] = await at_once(
            bench,
            [
                bench.say(attempt, status, began=True, flow=flows[0]),
                bench.lose(attempt.worker, flows[1]),
                bench.lose(attempt.worker, flows[2]),
            ],
        )
        now = await bench.execution(one)
        if done.late:
            assert (now.status, now.attempt) in [(S.SCHEDULED, 2), (S.SCHEDULED, 3)]
        elif status is S.COMPLETED:
            assert (now.status, now.attempt) == (S.COMPLETED, 1)
        else:
            assert (now.status, now.attempt) == (S.REQUESTED, 2)
        await leave(bench, one)


async def test_the_same_end_told_twice_at_once_counts_once(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    for _ in range(ROUNDS):
        [one] = await ask(bench, delay=1000)
        attempt = await handed(bench, one)
        done = await at_once(
            bench, [bench.say(attempt, S.FAILED, began=True, flow=flow) for flow in flows]
        )
        assert sum(not each.late for each in done) == 1
        assert (await bench.execution(one)).attempt == 2
        await leave(bench, one)


async def test_what_is_handed_back_meets_the_loss_of_its_worker(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    """Each attempt is either given back or lost, and the numbers of attempts tell how many there were of both."""
    for _ in range(ROUNDS):
        [one] = await ask(bench)
        attempt = await handed(bench, one)
        done = await asyncio.gather(
            flows[0].hand_back(attempt.worker, [one]), bench.lose(attempt.worker, flows[1])
        )
        bench.given_back[one] = done[0]
        await bench.check()
        assert (await bench.execution(one)).attempt == 1 + sum(done)
        await leave(bench, one)


async def regroup(bench: AttemptBench, by: list[str]) -> None:
    """The policy is another one, and nobody has arranged the lanes yet."""
    changes = PolicyChanges(concurrency_parameters=by)
    await bench.database.run(update_policy, "a.policy", changes, bench.clock.now())


async def test_an_end_meets_a_change_of_groups(bench: AttemptBench, flows: list[Flow]) -> None:
    """Its worker names the lane that it was told; the execution may stand in another one by then."""
    for number in range(ROUNDS):
        request = Request(
            action_ref="a.one",
            parameters={"customer": "red"},
            max_retries=1,
            retry=Retry(delay=1000 * (number % 2)),
        )
        [one] = await bench.order([request])
        attempt = await handed(bench, one.id)
        await regroup(bench, ["customer"] if number % 4 < 2 else [])
        await at_once(
            bench,
            [
                flows[1].arrange(),
                bench.say(attempt, S.FAILED, began=True, flow=flows[0]),
                flows[2].arrange(),
            ],
        )
        assert (await bench.execution(one.id)).attempt == 2
        await leave(bench, one.id)


async def test_the_return_from_a_delay_meets_a_change_of_groups(
    bench: AttemptBench, flows: list[Flow]
) -> None:
    for number in range(ROUNDS):
        one = await resting(bench)
        await regroup(bench, [] if number % 2 else ["customer"])
        await at_once(
            bench, [flows[2].arrange(), flows[0].release_delayed(), flows[1].release_delayed()]
        )
        assert await bench.running() == [one]
        await leave(bench, one)


@pytest.mark.parametrize("delay", [0, 1000])
async def test_a_failure_told_after_its_execution_was_moved_to_another_lane_is_one(
    bench: AttemptBench, delay: float
) -> None:
    request = Request(
        action_ref="a.one", parameters={"customer": "red"}, max_retries=1, retry=Retry(delay=delay)
    )
    [one] = await bench.order([request])
    attempt = await handed(bench, one.id)
    await bench.change(concurrency_parameters=["customer"])
    assert not (await bench.say(attempt, S.FAILED, began=True)).late
    assert (await bench.execution(one.id)).attempt == 2
