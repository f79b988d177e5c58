"""One timer for many moments; while none is set there is no task."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from attune.kernel.clock import Clock


class Moment:
    """One callback to come. A moment that was called off rings no more."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback


class Alarm:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: list[tuple[float, int, Moment]] = []
        self._order = count()
        self._live = 0
        self._task: asyncio.Task[None] | None = None
        self._due = 0.0

    def at(self, due: float, callback: Callable[[], None]) -> Moment:
        """Call back when the clock's monotonic time reaches `due`; equal moments keep their order."""
        moment = Moment(callback)
        self._live += 1
        heapq.heappush(self._moments, (due, next(self._order), moment))
        if self._task is None or due < self._due:
            self._stop()
            self._due = due
            self._task = asyncio.create_task(self._run())
        return moment

    def call_off(self, moment: Moment) -> None:
        if moment.callback is None:
            return
        moment.callback = None
        self._live -= 1
        if self._live == 0:
            self._moments.clear()
            self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while self._moments:
            self._due = self._moments[0][0]
            remaining = self._due - self._clock.monotonic()
            if remaining > 0:
                await self._clock.sleep(remaining)
            self._ring()
        self._task = None

    def _ring(self) -> None:
        now = self._clock.monotonic()
        while self._moments and self._moments[0][0] <= now:
            _, _, moment = heapq.heappop(self._moments)
            callback, moment.callback = moment.callback, None
            if callback is not None:
                self._live -= 1
                callback()
