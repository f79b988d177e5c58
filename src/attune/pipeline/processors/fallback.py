"""Finds what no message told of: the work of a lost message waits for one interval at most."""

import asyncio

import structlog

from attune.catalog.rows import TOPIC
from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.pipeline.enforcements.steps import open_enforcements
from attune.pipeline.events.steps import open_events
from attune.pipeline.flow import Flow

_log = structlog.get_logger()


def _nothing() -> None:
    """Until it has started there is nothing to stop."""


class FallbackConfig(DutyConfig, frozen=True, kw_only=True):
    """`batch` is how many rows one transaction takes."""

    interval: float = 10.0
    batch: int = 500


class Fallback(Duty[FallbackConfig]):
    """Looks at everything that can wait: events, enforcements, slots, workers. Safe in any number of executors."""

    name = "fallback scheduling"

    def __init__(self, flow: Flow, clock: Clock, config: FallbackConfig | None = None) -> None:
        super().__init__(config or FallbackConfig(), clock)
        self._flow = flow
        self._stop_listening = _nothing

    async def start(self) -> asyncio.Task[None]:
        """A change of what users define may raise a limit, so it is looked at without waiting."""
        self._stop_listening = self._flow.database.listen(TOPIC, lambda _key: self.hurry())
        return await super().start()

    async def stop(self) -> None:
        self._stop_listening()
        await super().stop()

    async def run_once(self) -> None:
        await self._events()
        await self._enforcements()
        taken = await self._flow.take_back_from_silent()
        if taken:
            _log.warning("Took work back from workers that are gone.", executions=taken)
        await self._flow.arrange()
        await self._flow.promote()

    async def _events(self) -> None:
        last = 0
        while ids := await self._flow.database.read(open_events, last, self.config.batch):
            await self._flow.process_events(ids)
            last = ids[-1]

    async def _enforcements(self) -> None:
        last = 0
        while ids := await self._flow.database.read(open_enforcements, last, self.config.batch):
            await self._flow.process_enforcements(ids)
            last = ids[-1]
