"""Ends attempts that a worker was handed and did not begin within executor.scheduled_timeout."""

import structlog

from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.pipeline.flow import Flow

_log = structlog.get_logger()


class ExecutionTimeoutConfig(DutyConfig, frozen=True, kw_only=True):
    interval: float = 60.0


class ExecutionTimeoutMonitor(Duty[ExecutionTimeoutConfig]):
    name = "execution timeout monitor"

    def __init__(
        self, flow: Flow, clock: Clock, config: ExecutionTimeoutConfig | None = None
    ) -> None:
        super().__init__(config or ExecutionTimeoutConfig(), clock)
        self._flow = flow

    async def run_once(self) -> None:
        if ended := await self._flow.fail_unbegun():
            _log.warning("Ended attempts that no worker began in time.", executions=ended)
