"""Brings executions back whose delay between two attempts is over.

It sleeps until the first of them is due. Nothing is looked at before that, unless one with an earlier time begins to
rest.
"""

from datetime import datetime, timedelta

from attune.kernel.clock import Clock
from attune.kernel.duty import DutyConfig
from attune.pipeline.flow import Flow
from attune.pipeline.processors.woken import WokenDuty
from attune.pipeline.queues.returning import DELAYS


class RetryReleaseConfig(DutyConfig, frozen=True, kw_only=True):
    """`interval` is the longest sleep: what a lost wake costs. `overlap` keeps a clock's jitter from a pass too early."""

    interval: float = 10.0
    overlap: float = 0.001


class RetryRelease(WokenDuty[RetryReleaseConfig]):
    name = "retry release"
    topics = (DELAYS,)

    def __init__(self, flow: Flow, clock: Clock, config: RetryReleaseConfig | None = None) -> None:
        super().__init__(flow, clock, config or RetryReleaseConfig())
        self._next: datetime | None = None

    async def run_once(self) -> None:
        self._next = await self._flow.release_delayed()

    def until_next(self) -> float:
        """Until the first is due, and an interval at most."""
        if self._next is None:
            return self.config.interval
        wait = self._next - self.clock.now() + timedelta(seconds=self.config.overlap)
        return min(max(wait.total_seconds(), self.config.overlap), self.config.interval)
