"""Brings executions back whose delay between two attempts is over.

It sleeps until the first of them is due. Nothing is looked at before that, unless one with an earlier time begins to
rest.
"""

from datetime import datetime

from attune.pipeline.processors.woken import DueDuty
from attune.pipeline.queues.returning import DELAYS


class RetryRelease(DueDuty):
    name = "retry release"
    topics = (DELAYS,)

    async def do_due(self) -> datetime | None:
        return await self._flow.release_delayed()
