"""Time as an argument, so that a test or the simulator can own it."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of time: code that asks the operating system instead cannot be simulated."""

    def now(self) -> datetime:
        """Wall time, always aware and in UTC: what is stored and shown."""

    def monotonic(self) -> float:
        """Seconds that never jump back: what durations and deadlines inside a process use."""

    async def sleep(self, seconds: float) -> None:
        """Return after that much of this clock's time."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
