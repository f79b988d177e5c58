"""Finds what no message told of: the work of a lost message waits for one interval at most."""

from attune.catalog import runtime_settings
from attune.catalog.rows import TOPIC
from attune.kernel.clock import Clock
from attune.kernel.duty import DutyConfig
from attune.pipeline.enforcements.steps import open_enforcements
from attune.pipeline.events.steps import open_events
from attune.pipeline.flow import Flow
from attune.pipeline.processors.woken import WokenDuty


class FallbackConfig(DutyConfig, frozen=True, kw_only=True):
    """`batch` is how many rows one transaction takes."""

    interval: float = 10.0
    batch: int = 500


class Fallback(WokenDuty[FallbackConfig]):
    """Looks at everything that can wait: events, enforcements, slots. Safe in any number of executors."""

    name = "fallback scheduling"
    topics = (TOPIC, runtime_settings.TOPIC)

    def __init__(self, flow: Flow, clock: Clock, config: FallbackConfig | None = None) -> None:
        super().__init__(flow, clock, config or FallbackConfig())

    async def run_once(self) -> None:
        await self._events()
        await self._enforcements()
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
