"""The table of scheduling triggers: whatever happens, whoever is next goes at once, and without the fallback."""

import asyncio

import pytest

from attune.kernel.statuses import ExecutionStatus as S
from attune.pipeline.executions.model import Priority
from attune.store.database import Tx
from tests.contract.pipeline.bench import Bench


async def test_execution_requested_enqueues_and_tries_to_schedule(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    first, second = await bench.ask(count=2)
    assert await bench.running() == [first]
    assert await bench.waiting() == [second]


@pytest.mark.parametrize("status", [S.COMPLETED, S.FAILED, S.TIMEOUT])
async def test_an_end_releases_the_slot_and_the_next_goes_in_the_same_step(
    bench: Bench, status: S
) -> None:
    await bench.policy(concurrency_limit=1)
    first, second, third = await bench.ask(count=3)
    assert await bench.end(first, status=status) == [second]
    assert await bench.running() == [second]
    assert await bench.waiting() == [third]


async def test_execution_cancelled_removes_it_and_the_next_moves_up(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    first, second, third = await bench.ask(count=3)
    await bench.flow.cancel(second)
    assert await bench.waiting() == [third]
    await bench.flow.cancel(first)  # its worker is asked, and says so
    assert await bench.end(first, status=S.CANCELLED) == [third]
    assert await bench.running() == [third]


async def test_the_periodic_fallback_schedules_what_no_event_told_of(bench: Bench) -> None:
    """A limit that somebody raised in the table itself, behind everybody's back."""
    await bench.policy(concurrency_limit=1)
    first, second = await bench.ask(count=2)
    await bench.execute("UPDATE policy SET concurrency_limit = 2")
    await bench.execute("UPDATE catalog_version SET version = version + 1")
    assert await bench.running() == [first]
    await bench.flow.arrange()
    await bench.flow.promote()
    assert await bench.running() == [first, second]


async def test_who_is_new_takes_no_free_worker_before_those_that_wait_for_one(bench: Bench) -> None:
    """They became ready while nobody had room, and nobody has looked since."""
    await bench.execute("UPDATE worker SET capacity = 1")
    [busy] = await bench.ask()
    older = await bench.ask("a.two", 2)
    await bench.execute("UPDATE worker SET capacity = 3")
    bench.step(1)
    newer = await bench.ask("b.one", 2)
    assert await bench.in_hand() == [busy, *older]
    await bench.execute("UPDATE worker SET capacity = 4")
    urgent = await bench.ask("b.one", priority=Priority.CRITICAL)
    assert await bench.in_hand() == [busy, *older, *urgent]
    assert await bench.end(busy) == newer[:1]


async def test_an_end_hands_its_worker_no_more_than_it_freed(bench: Bench) -> None:
    """Others may be giving it work at the same time, whose rows it does not see yet."""
    await bench.execute("UPDATE worker SET capacity = 2")
    first, second = await bench.ask(count=2)
    third, *_ = await bench.ask(count=3)
    await bench.execute("UPDATE worker SET capacity = 10")
    assert await bench.end(first) == [third]
    assert await bench.in_hand() == [second, third]


@pytest.mark.parametrize("bench", ["postgresql"], indirect=True)  # SQLite has one writer
async def test_who_waits_for_nobody_leaves_a_worker_that_others_hold_to_an_executor(
    bench: Bench,
) -> None:
    api = bench.new_flow("api", through=True, waits=False)
    held, done = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> None:
        await tx.all(int, "SELECT id FROM worker FOR UPDATE")
        held.set()
        await done.wait()

    holding = asyncio.create_task(bench.database.run(hold))
    await held.wait()
    [one] = await bench.ask(flow=api)
    assert (await bench.running(), await bench.in_hand()) == ([one], [])
    done.set()
    await holding
    await bench.flow.schedule()
    assert await bench.in_hand() == [one]
    [other] = await bench.ask(flow=api)
    assert await bench.in_hand() == [one, other]
