"""How a worker goes: nothing new, what runs to its end, the rest to others; in time, whatever the servers do."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import structlog

from attune.pipeline.completion.model import LostWorker
from attune.pipeline.flow import Flow
from attune.pipeline.workers.model import Worker
from attune.worker.handoffs import holdings
from attune.worker.jobs import Jobs

# Seconds. Beside them a process has ten to end in after `worker.shutdown_timeout`.
_KILL: Final = 6.0
_WRITE: Final = 2.0

_log = structlog.get_logger()


class Leaving:
    """The steps of going, each within its bound. Whoever calls them begins nothing any more."""

    def __init__(self, flow: Flow, jobs: Jobs, worker: Worker) -> None:
        self._flow = flow
        self._jobs = jobs
        self._worker = worker

    async def hand_back_unbegun(self, seconds: float) -> None:
        await in_time(self._hand_back_unbegun(), seconds, "hand back what was not begun")

    async def finish(self, seconds: float) -> str | None:
        """Let what runs end by itself for so long; then end it, and give it to others. What is left undone, in words."""
        finishing = asyncio.create_task(self._jobs.finished())
        await asyncio.wait({finishing}, timeout=max(seconds, 0))
        if finishing.done():
            return None
        finishing.cancel()
        count = len(self._jobs)
        await self.end()
        await in_time(self._take_back(), _WRITE, "hand back what did not finish")
        _log.warning("Did not finish in time.", executions=count)
        return f"{count} executions did not finish in time"

    async def end(self) -> None:
        """End what runs. Nothing is written of it: whoever has it next starts anew."""
        running = self._jobs.running()
        self._jobs.revoke(running)
        if not await self._jobs.ended(running, _KILL):
            _log.error("Some actions could not be ended.", running=len(self._jobs.running()))

    async def _hand_back_unbegun(self) -> None:
        held = await self._flow.database.read(holdings, self._worker)
        begun = self._jobs.holds
        ids = [one.execution for one in held if not begun(one.execution, one.attempt)]
        if ids:
            count = await self._flow.hand_back(self._worker.id, ids)
            _log.info("Handed back what was not begun.", executions=count)

    async def _take_back(self) -> None:
        worker = self._worker
        if await self._flow.database.read(holdings, worker):
            lost = LostWorker(worker.id, worker.name, worker.cordoned)
            await self._flow.take_back(lost, "was stopped")


async def in_time(work: Coroutine[Any, Any, object], seconds: float, what: str) -> None:
    """Do it, unless it takes too long or fails; then it is left to those who watch over leases and silence.

    It is not waited for once it was given up: a statement that hangs may hang in its own cancellation.
    """
    task = asyncio.create_task(work)
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        task.cancel()
        task.add_done_callback(lambda each: each.cancelled() or each.exception())
        _log.warning("The worker could not do a last thing in time.", what=what, seconds=seconds)
    elif (error := task.exception()) is not None:
        _log.warning("The worker could not do a last thing.", what=what, error=str(error))
