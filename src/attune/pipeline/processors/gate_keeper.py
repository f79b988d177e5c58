"""Opens gates of time: a rate whose window has passed, a calendar whose hour has come.

It sleeps until the first of them opens. Nothing is looked at before that, unless a lane begins to wait for an
earlier time, or a start is told on which a rate hangs.
"""

import asyncio
from datetime import datetime, timedelta

from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.pipeline.flow import Flow
from attune.pipeline.queues.rates import GATES


def _nothing() -> None:
    """Until it has started there is nothing to stop."""


class GateKeeperConfig(DutyConfig, frozen=True, kw_only=True):
    """`interval` is the longest sleep: what a lost wake costs. `overlap` keeps a clock's jitter from a pass too early."""

    interval: float = 10.0
    overlap: float = 0.001


class GateKeeper(Duty[GateKeeperConfig]):
    name = "gate keeper"

    def __init__(self, flow: Flow, clock: Clock, config: GateKeeperConfig | None = None) -> None:
        super().__init__(config or GateKeeperConfig(), clock)
        self._flow = flow
        self._stop_listening = _nothing
        self._next: datetime | None = None

    async def start(self) -> asyncio.Task[None]:
        self._stop_listening = self._flow.database.listen(GATES, lambda _key: self.hurry())
        return await super().start()

    async def stop(self) -> None:
        self._stop_listening()
        await super().stop()

    async def run_once(self) -> None:
        self._next = await self._flow.open_gates()

    def until_next(self) -> float:
        """Until the first gate opens, and an interval at most."""
        if self._next is None:
            return self.config.interval
        wait = self._next - self.clock.now() + timedelta(seconds=self.config.overlap)
        return min(max(wait.total_seconds(), self.config.overlap), self.config.interval)
