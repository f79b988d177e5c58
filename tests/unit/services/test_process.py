"""Parts start in order and stop in reverse, whatever happens on the way."""

import asyncio
import os
import signal

import pytest

from attune.kernel.errors import InvalidSettings
from attune.services.part import Part
from attune.services.process import Process

Log = list[str]


class Recorded:
    def __init__(self, name: str, log: Log, vital: bool = False) -> None:
        self.name = name
        self.log = log
        self.fails_to_start = False
        self.fails_to_stop = False
        self.blocks = asyncio.Event()
        self.blocks.set()
        self.life: asyncio.Task[None] | None = None
        self.vital = vital

    async def start(self) -> asyncio.Task[None] | None:
        await self.blocks.wait()
        if self.fails_to_start:
            raise InvalidSettings(f"{self.name} cannot start")
        self.log.append(f"+{self.name}")
        if self.vital:
            self.life = asyncio.create_task(self._live(), name=self.name)
        return self.life

    async def _live(self) -> None:
        await asyncio.Event().wait()

    async def stop(self) -> None:
        self.log.append(f"-{self.name}")
        if self.life:
            self.life.cancel()
        if self.fails_to_stop:
            raise RuntimeError("stuck")
        await self.blocks.wait()


@pytest.fixture
def log() -> Log:
    return []


def process_of(*parts: Part, **options: object) -> tuple[Process, asyncio.Event]:
    ready = asyncio.Event()
    return Process("test", parts, ready=ready.set, **options), ready  # type: ignore[arg-type]


async def test_parts_start_in_order_and_stop_in_reverse(log: Log) -> None:
    process, ready = process_of(Recorded("a", log), Recorded("b", log, vital=True))
    running = asyncio.create_task(process.run())
    await ready.wait()
    assert log == ["+a", "+b"]
    process.ask_to_stop()
    assert await running == 0
    assert log == ["+a", "+b", "-b", "-a"]


async def test_a_part_that_cannot_start_is_told_after_the_others_have_stopped(log: Log) -> None:
    first, second, third = (Recorded(name, log) for name in "abc")
    second.fails_to_start = True
    process, _ = process_of(first, second, third)
    with pytest.raises(InvalidSettings, match="b cannot start"):
        await process.run()
    assert log == ["+a", "-b", "-a"]


async def test_a_signal_while_starting_stops_what_has_started(log: Log) -> None:
    first, second = Recorded("a", log), Recorded("b", log)
    second.blocks.clear()
    process, ready = process_of(first, second)
    running = asyncio.create_task(process.run())
    while log != ["+a"]:
        await asyncio.sleep(0)
    process.ask_to_stop()
    while log != ["+a", "-b"]:
        await asyncio.sleep(0)
    second.blocks.set()
    assert await running == 0
    assert log == ["+a", "-b", "-a"]
    assert not ready.is_set()


async def test_a_vital_part_that_ends_takes_the_process_with_it(log: Log) -> None:
    part = Recorded("a", log, vital=True)
    process, ready = process_of(part)
    running = asyncio.create_task(process.run())
    await ready.wait()
    assert part.life is not None
    part.life.cancel()
    assert await running == 1
    assert log == ["+a", "-a"]


async def test_a_part_that_fails_to_stop_does_not_keep_the_others_from_it(log: Log) -> None:
    first, second = Recorded("a", log), Recorded("b", log)
    second.fails_to_stop = True
    process, ready = process_of(first, second)
    running = asyncio.create_task(process.run())
    await ready.wait()
    process.ask_to_stop()
    assert await running == 0
    assert log == ["+a", "+b", "-b", "-a"]


async def test_what_does_not_stop_within_the_grace_is_left_behind(log: Log) -> None:
    part = Recorded("a", log)
    process, ready = process_of(part, grace=0.01)
    running = asyncio.create_task(process.run())
    await ready.wait()
    part.blocks.clear()
    process.ask_to_stop()
    assert await running == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_one_signal_stops_gracefully_and_a_second_one_now(
    log: Log, number: signal.Signals
) -> None:
    part = Recorded("a", log)
    exits: list[int] = []
    process, ready = process_of(part, exit_now=exits.append)
    running = asyncio.create_task(process.run())
    await ready.wait()
    part.blocks.clear()
    os.kill(os.getpid(), number)
    while log != ["+a", "-a"]:
        await asyncio.sleep(0)
    assert not running.done()
    assert exits == []
    os.kill(os.getpid(), number)
    while not exits:
        await asyncio.sleep(0)
    assert exits == [128 + number]
    part.blocks.set()
    assert await running == 0
