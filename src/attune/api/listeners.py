"""A client's place in a feed: what waits for it is bounded, and it can be woken, ended and waited for."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from attune.kernel.clock import Clock
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import ExecutionSummary

WAITING_AT_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an execution, with the event that tells of it, written once for all who get it."""

    execution: ExecutionSummary
    event: bytes


class Listener:
    """`only` is the one execution that it is about, null for all.

    One that does not take what is put for it has `fallen_behind` in the end: nothing more is kept for it.
    """

    def __init__(self, clock: Clock, only: ExecutionId | None) -> None:
        self.only = only
        self.ended = False
        self.fallen_behind = False
        self._clock = clock
        self._waiting: deque[Change] = deque()
        self._stirred = False
        self._sleeper: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = 0.0

    def put(self, change: Change) -> None:
        if len(self._waiting) < WAITING_AT_MOST:
            self._waiting.append(change)
        else:
            self.fallen_behind = True
        self.stir()

    def stir(self) -> None:
        """There may be something to look at."""
        self._stirred = True
        self._wake()

    def end(self) -> None:
        """Nothing will come any more."""
        self.ended = True
        self.stir()

    def take(self) -> list[Change]:
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def close(self) -> None:
        """Nobody waits here any more. Safe to call twice."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def stirred_within(self, seconds: float) -> bool:
        """Whether something happened before the time was over; what happened since the last call counts."""
        if not self._stirred:
            await self._sleep(self._clock.monotonic() + seconds)
        stirred, self._stirred = self._stirred, False
        return stirred

    async def _sleep(self, deadline: float) -> None:
        """One alarm serves many sleeps: most end long before it, and it then looks for the next one's deadline."""
        self._deadline = deadline
        if self._alarm is None or self._alarm_at > deadline:
            self.close()
            self._alarm = asyncio.create_task(self._wake_in_time(), name="listener's alarm")
        self._sleeper = asyncio.get_running_loop().create_future()
        await self._sleeper

    async def _wake_in_time(self) -> None:
        while (left := self._deadline - self._clock.monotonic()) > 0:
            self._alarm_at = self._deadline
            await self._clock.sleep(left)
        self._alarm = None
        self._wake()

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
