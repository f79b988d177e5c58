"""A duty that a wake of the database hurries, beside its interval."""

import asyncio
from collections.abc import Callable
from typing import ClassVar

from attune.kernel.clock import Clock
from attune.kernel.duty import C, Duty
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
