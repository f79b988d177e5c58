"""A duty passes at once, at every interval and when hurried; it outlives its errors and stops cleanly."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from attune.kernel.duty import Duty, DutyConfig
from attune.kernel.errors import DatabaseUnavailable
from attune.simulation.clock import ManualClock


class Counting(Duty[DutyConfig]):
    name = "counting"

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(DutyConfig(interval=10), clock)
        self.passes: list[float] = []
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def run_once(self) -> None:
        self.passes.append(self.clock.monotonic())
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def duty(clock: ManualClock) -> AsyncIterator[Counting]:
    duty = Counting(clock)
    yield duty
    duty.gate.set()
    await duty.stop()


async def test_it_passes_at_once_and_at_every_interval(duty: Counting, clock: ManualClock) -> None:
    await duty.start()
    await clock.advance(35)
    assert duty.passes == [0, 10, 20, 30]


async def test_hurry_makes_it_look_now(duty: Counting, clock: ManualClock) -> None:
    await duty.start()
    await clock.advance(3)
    duty.hurry()
    duty.hurry()
    await clock.advance(1)
    assert duty.passes == [0, 3]


async def test_hurry_during_a_pass_makes_one_more_pass(duty: Counting, clock: ManualClock) -> None:
    duty.gate.clear()
    await duty.start()
    await clock.settle()
    duty.hurry()
    duty.gate.set()
    await clock.settle()
    assert duty.passes == [0, 0]


@pytest.mark.parametrize("failure", [DatabaseUnavailable("away"), ValueError("bug")])
async def test_f31_an_error_ends_one_pass_and_not_the_duty(
    duty: Counting, clock: ManualClock, failure: Exception
) -> None:
    duty.failures = [failure]
    await duty.start()
    await clock.advance(10)
    assert duty.passes == [0, 10]


async def test_stopping_finishes_the_pass_under_way(duty: Counting, clock: ManualClock) -> None:
    duty.gate.clear()
    task = await duty.start()
    await clock.settle()
    stopping = asyncio.create_task(duty.stop())
    await clock.settle()
    assert not stopping.done()
    duty.gate.set()
    await stopping
    assert task.done()
    await clock.advance(100)
    assert duty.passes == [0]


async def test_stopping_twice_and_without_a_start_is_safe(duty: Counting) -> None:
    await duty.stop()
    await duty.start()
    await duty.stop()
    await duty.stop()


async def test_it_can_start_again(duty: Counting, clock: ManualClock) -> None:
    await duty.start()
    await clock.settle()
    await duty.stop()
    await duty.start()
    await clock.settle()
    assert duty.passes == [0, 0]


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        DutyConfig(interval=0)
