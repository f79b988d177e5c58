"""A listener wakes for what happens and when its time is over, and leaves nothing behind."""

import asyncio

from attune.api.listeners import Listener
from attune.simulation.clock import ManualClock


def alarms() -> int:
    return sum(task.get_name() == "listener's alarm" for task in asyncio.all_tasks())


async def test_what_happened_before_is_not_waited_for() -> None:
    listener = Listener(ManualClock(), None)
    listener.stir()
    assert await listener.stirred_within(15)
    assert alarms() == 0


async def test_it_wakes_as_soon_as_something_happens() -> None:
    clock = ManualClock()
    listener = Listener(clock, None)
    waiting = asyncio.create_task(listener.stirred_within(15))
    await clock.advance(14)
    assert not waiting.done()
    listener.stir()
    assert await waiting
    listener.close()


async def test_silence_ends_at_its_very_moment() -> None:
    clock = ManualClock()
    listener = Listener(clock, None)
    for _ in range(3):
        waiting = asyncio.create_task(listener.stirred_within(15))
        await clock.advance(14.9)
        assert not waiting.done()
        await clock.advance(0.1)
        assert waiting.done()
        assert not waiting.result()


async def test_the_time_of_each_wait_counts_from_its_beginning() -> None:
    """The alarm was set for an earlier wait."""
    clock = ManualClock()
    listener = Listener(clock, None)
    for _ in range(4):
        waiting = asyncio.create_task(listener.stirred_within(15))
        await clock.advance(10)
        listener.stir()
        assert await waiting
        assert alarms() == 1
    waiting = asyncio.create_task(listener.stirred_within(15))
    await clock.advance(14)
    assert not waiting.done()
    await clock.advance(1)
    assert not await waiting


async def test_a_shorter_wait_does_not_sleep_as_long_as_the_one_before() -> None:
    clock = ManualClock()
    listener = Listener(clock, None)
    waiting = asyncio.create_task(listener.stirred_within(15))
    await clock.advance(1)
    listener.stir()
    assert await waiting
    waiting = asyncio.create_task(listener.stirred_within(1))
    await clock.advance(1)
    assert waiting.done()
    assert not waiting.result()
    listener.close()


async def test_nothing_is_left_of_one_that_is_closed() -> None:
    clock = ManualClock()
    listener = Listener(clock, None)
    waiting = asyncio.create_task(listener.stirred_within(15))
    await clock.settle()
    waiting.cancel()
    listener.close()
    listener.close()
    await clock.settle()
    assert waiting.cancelled()
    assert alarms() == 0
