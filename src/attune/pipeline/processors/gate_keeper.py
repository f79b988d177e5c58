"""Opens gates of time: a rate whose window has passed, a calendar whose hour has come.

It sleeps until the first of them opens. Nothing is looked at before that, unless a lane begins to wait for an
earlier time, or a start is told on which a rate hangs.
"""

from datetime import datetime, timedelta

from attune.kernel.clock import Clock
from attune.kernel.duty import DutyConfig
from attune.pipeline.flow import Flow
from attune.pipeline.processors.woken import WokenDuty
from attune.pipeline.queues.rates import GATES


class GateKeeperConfig(DutyConfig, frozen=True, kw_only=True):
    """`interval` is the longest sleep: what a lost wake costs. `overlap` keeps a clock's jitter from a pass too early."""

    interval: float = 10.0
    overlap: float = 0.001


class GateKeeper(WokenDuty[GateKeeperConfig]):
    name = "gate keeper"
    topics = (GATES,)

    def __init__(self, flow: Flow, clock: Clock, config: GateKeeperConfig | None = None) -> None:
        super().__init__(flow, clock, config or GateKeeperConfig())
        self._next: datetime | None = None

    async def run_once(self) -> None:
        self._next = await self._flow.open_gates()

    def until_next(self) -> float:
        """Until the first gate opens, and an interval at most."""
        if self._next is None:
            return self.config.interval
        wait = self._next - self.clock.now() + timedelta(seconds=self.config.overlap)
        return min(max(wait.total_seconds(), self.config.overlap), self.config.interval)
