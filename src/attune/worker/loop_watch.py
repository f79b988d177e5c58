"""Whether an event loop still turns, as another thread sees it."""

import asyncio
from collections.abc import Callable

from attune.kernel.clock import Clock


class LoopWatch:
    """Asks by a call that only a turning loop makes. `limit` is the standstill, in seconds, that counts as one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, limit: float) -> None:
        self._loop = loop
        self._clock = clock
        self._limit = limit
        self._turned = clock.monotonic()
        self._asked = False

    def ask(self) -> None:
        """One question at a time, so that a loop that stands still gathers none."""
        if not self._asked:
            self._asked = True
            call_in(self._loop, self._answer)

    @property
    def stands_still(self) -> bool:
        return self._clock.monotonic() - self._turned >= self._limit

    def _answer(self) -> None:
        self._turned = self._clock.monotonic()
        self._asked = False


def call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """From any thread. A loop that is closed has nobody left who could be told."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        return
