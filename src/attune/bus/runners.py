"""Tasks that work off what is offered, no more than a bound at once, and none while nothing is there."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Generic, TypeVar

import structlog

from attune.kernel.clock import Clock

_log = structlog.get_logger()

T = TypeVar("T")


class Runners(Generic[T]):
    """A task takes one item after the other and ends when none is left.

    The next task is started by the one before it, just before that begins an item: work that never
    suspends is done by one task, work that does gets as many as it is allowed.
    """

    def __init__(self, work: Callable[[T], Awaitable[None]], limit: int) -> None:
        self._work = work
        self._limit = limit
        self._offered: deque[T] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = False
        self._stopped = False

    def offer(self, item: T) -> None:
        if self._stopped:
            return
        self._offered.append(item)
        self._start_one()

    def forget(self) -> None:
        """Drop what no task has begun: it belongs to a connection that is gone."""
        self._offered.clear()

    def refuse(self) -> None:
        """Begin nothing from this moment on."""
        self._stopped = True
        self._offered.clear()

    async def stop(self, clock: Clock, within: float | None = None) -> None:
        """Wait for what runs; after `within` seconds cancel it."""
        self.refuse()
        running = {task for task in self._tasks if task is not asyncio.current_task()}
        if not running:
            return
        if not await done_within(clock, within, running):
            _log.warning(
                "Handlers were cancelled because they did not end in time.", running=len(running)
            )
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    def _start_one(self) -> None:
        if self._starting or len(self._tasks) >= self._limit:
            return
        self._starting = True
        task = asyncio.create_task(self._run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        self._starting = False
        offered = self._offered
        while offered:
            item = offered.popleft()
            if offered:
                self._start_one()
            try:
                await self._work(item)
            except Exception:  # noqa: BLE001 - the edge of the loop: one item must not take the others with it
                _log.exception("A consumer could not settle a message.")


async def done_within(
    clock: Clock, seconds: float | None, tasks: Collection[asyncio.Task[Any]]
) -> bool:
    """Whether all tasks ended before that much of the clock's time had passed."""
    if seconds is None:
        await asyncio.wait(tasks)
        return True
    timer = asyncio.ensure_future(clock.sleep(seconds))
    everything = asyncio.ensure_future(asyncio.wait(tasks))
    try:
        await asyncio.wait({timer, everything}, return_when=asyncio.FIRST_COMPLETED)
        return everything.done()
    finally:
        timer.cancel()
        everything.cancel()
