"""The manual clock, the alarm on it, and the tasks that run handlers."""

import asyncio

from attune.bus.alarm import Alarm
from attune.bus.runners import Runners, done_within
from attune.simulation.clock import START, ManualClock


async def test_sleepers_wake_in_the_order_of_their_moments_and_see_their_own_time() -> None:
    clock = ManualClock()
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            seen.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sleeper("late", 3.0))
        tasks.create_task(sleeper("often", 1.0, 1.0, 2.0))
        await clock.advance(10.0)
    assert seen == [("often", 1.0), ("often", 2.0), ("late", 3.0), ("often", 4.0)]
    assert (clock.now() - START).total_seconds() == 10.0


async def test_nobody_wakes_before_time_passes() -> None:
    clock = ManualClock()
    sleeping = asyncio.create_task(clock.sleep(1.0))
    await clock.settle()
    assert not sleeping.done()
    sleeping.cancel()
    await clock.advance(2.0)
    assert clock.next_due() is None


async def test_the_alarm_rings_in_order_also_for_a_moment_that_was_set_later_but_is_nearer() -> (
    None
):
    clock = ManualClock()
    alarm = Alarm(clock)
    rung: list[str] = []
    alarm.at(5.0, lambda: rung.append("far"))
    await clock.settle()
    alarm.at(1.0, lambda: rung.append("near"))
    off = alarm.at(2.0, lambda: rung.append("off"))
    alarm.call_off(off)
    alarm.call_off(off)
    await clock.advance(1.0)
    assert rung == ["near"]
    await clock.advance(4.0)
    assert rung == ["near", "far"]


async def test_an_alarm_whose_moments_were_all_called_off_has_no_task() -> None:
    clock = ManualClock()
    before = asyncio.all_tasks()
    alarm = Alarm(clock)
    moments = [alarm.at(float(due), lambda: None) for due in range(1, 4)]
    for moment in moments:
        alarm.call_off(moment)
    await clock.settle()
    assert asyncio.all_tasks() == before


async def test_runners_start_no_more_than_their_limit_and_end_with_the_work() -> None:
    gate = asyncio.Event()
    running = most = done = 0

    async def work(item: int) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        done += 1

    before = asyncio.all_tasks()
    runners = Runners(work, limit=4)
    for item in range(10):
        runners.offer(item)
    for _ in range(20):
        await asyncio.sleep(0)
    assert running == 4
    gate.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert (most, done) == (4, 10)
    assert asyncio.all_tasks() == before


async def test_one_item_that_fails_does_not_take_the_others_with_it() -> None:
    done: list[int] = []

    async def work(item: int) -> None:
        if item == 1:
            raise ValueError("no")
        done.append(item)

    runners = Runners(work, limit=1)
    for item in range(3):
        runners.offer(item)
    await runners_settle()
    assert done == [0, 2]


async def runners_settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_waiting_is_bounded_by_the_given_clock() -> None:
    clock = ManualClock()
    never = asyncio.create_task(asyncio.Event().wait())
    waiting = asyncio.create_task(done_within(clock, 5.0, {never}))
    await clock.advance(4.9)
    assert not waiting.done()
    await clock.advance(0.1)
    await clock.settle()
    assert waiting.result() is False
    never.cancel()
