"""A clock that stands still until somebody moves it."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

START = datetime(2026, 1, 1, tzinfo=UTC)
# Turns of the loop that a chain of awaits may need between two moments before it sleeps again.
_TURNS = 50


class ManualClock:
    """Sleepers wake in the order of their moments, and each sees the very time that it asked for."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let that much time pass, and let everything that was due in it happen in its order."""
        target = self._elapsed + seconds
        await self.settle()
        while (due := self.next_due()) is not None and due <= target:
            self._elapsed = due
            self._wake()
            await self.settle()
        self._elapsed = target

    async def settle(self) -> None:
        """Let the loop run, without time passing, until what is ready has been done."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def next_due(self) -> float | None:
        """When the next sleeper wakes, on the monotonic scale; None when nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _wake(self) -> None:
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
