"""Duties that a wake of the database hurries, beside their interval."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ClassVar

from attune.kernel.clock import Clock
from attune.kernel.duty import C, Duty, DutyConfig
from attune.pipeline.flow import Flow


class WokenDuty(Duty[C]):
    """`topics` are what it listens to while it runs."""

    topics: ClassVar[tuple[str, ...]]

    def __init__(self, flow: Flow, clock: Clock, config: C) -> None:
        super().__init__(config, clock)
        self._flow = flow
        self._listening: list[Callable[[], None]] = []

    async def start(self) -> asyncio.Task[None]:
        database = self._flow.database
        self._listening = [database.listen(t, lambda _key: self.hurry()) for t in self.topics]
        return await super().start()

    async def stop(self) -> None:
        while self._listening:
            self._listening.pop()()
        await super().stop()


class DueConfig(DutyConfig, frozen=True, kw_only=True):
    """`interval` is the longest sleep: what a lost wake costs. `overlap` keeps a clock's jitter from a pass too early."""

    interval: float = 10.0
    overlap: float = 0.001


class DueDuty(WokenDuty[DueConfig]):
    """Sleeps until the first thing is due, unless something earlier comes."""

    def __init__(self, flow: Flow, clock: Clock, config: DueConfig | None = None) -> None:
        super().__init__(flow, clock, config or DueConfig())
        self._next: datetime | None = None

    @abstractmethod
    async def do_due(self) -> datetime | None:
        """Do what is due now; when the next is, if there is any."""

    async def run_once(self) -> None:
        self._next = await self.do_due()

    def until_next(self) -> float:
        if self._next is None:
            return self.config.interval
        wait = self._next - self.clock.now() + timedelta(seconds=self.config.overlap)
        return min(max(wait.total_seconds(), self.config.overlap), self.config.interval)
