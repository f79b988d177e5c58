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
        self._stirred = asyncio.Event()

    def put(self, change: Change) -> None:
        if len(self._waiting) < WAITING_AT_MOST:
            self._waiting.append(change)
        else:
            self.fallen_behind = True
        self.stir()

    def stir(self) -> None:
        """There may be something to look at."""
        self._stirred.set()

    def end(self) -> None:
        """Nothing will come any more."""
        self.ended = True
        self.stir()

    def take(self) -> list[Change]:
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    async def stirred_within(self, seconds: float) -> bool:
        """Whether something happened before the time was over; what happened since the last call counts."""
        if not self._stirred.is_set():
            await self._wait(seconds)
        stirred = self._stirred.is_set()
        self._stirred.clear()
        return stirred

    async def _wait(self, seconds: float) -> None:
        waits = [
            asyncio.ensure_future(self._stirred.wait()),
            asyncio.ensure_future(self._clock.sleep(seconds)),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
