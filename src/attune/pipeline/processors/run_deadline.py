"""Ends attempts that ran over their limit and that their worker did not end."""

import structlog

from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.pipeline.flow import Flow

_log = structlog.get_logger()


class RunDeadlineConfig(DutyConfig, frozen=True, kw_only=True):
    interval: float = 60.0


class RunDeadlineMonitor(Duty[RunDeadlineConfig]):
    name = "run deadline monitor"

    def __init__(self, flow: Flow, clock: Clock, config: RunDeadlineConfig | None = None) -> None:
        super().__init__(config or RunDeadlineConfig(), clock)
        self._flow = flow

    async def run_once(self) -> None:
        if ended := await self._flow.fail_unended():
            _log.warning("Ended attempts that no worker ended in time.", executions=ended)
