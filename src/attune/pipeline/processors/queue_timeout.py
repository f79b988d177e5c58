"""Ends what waited longer than queue_timeout_seconds, and says so in its result."""

import structlog

from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.pipeline.flow import Flow

_log = structlog.get_logger()


class QueueTimeoutConfig(DutyConfig, frozen=True, kw_only=True):
    interval: float = 5.0


class QueueTimeout(Duty[QueueTimeoutConfig]):
    name = "queue timeout"

    def __init__(self, flow: Flow, clock: Clock, config: QueueTimeoutConfig | None = None) -> None:
        super().__init__(config or QueueTimeoutConfig(), clock)
        self._flow = flow

    async def run_once(self) -> None:
        if ended := await self._flow.expire():
            _log.warning("Ended executions that waited too long in a queue.", executions=ended)
