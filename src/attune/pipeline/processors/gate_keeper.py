"""Opens gates of time: a rate whose window has passed, a calendar whose hour has come.

It sleeps until the first of them opens. Nothing is looked at before that, unless a lane begins to wait for an
earlier time, or a start is told on which a rate hangs.
"""

from datetime import datetime

from attune.pipeline.processors.woken import DueDuty
from attune.pipeline.queues.rates import GATES


class GateKeeper(DueDuty):
    name = "gate keeper"
    topics = (GATES,)

    async def do_due(self) -> datetime | None:
        return await self._flow.open_gates()
