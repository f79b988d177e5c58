"""Runs an action as a process, and leaves none behind."""

import asyncio
import signal
from collections.abc import Mapping
from typing import Final

import structlog

from attune.kernel.clock import Clock
from attune.worker import decide
from attune.worker.command import command_of, private_folder
from attune.worker.descendants import Descendants, Lineage, Reach
from attune.worker.environment import EXECUTION
from attune.worker.formats import data_of
from attune.worker.limits import until_ended
from attune.worker.model import Finish, OutputFormat, Run, Stop
from attune.worker.output import Output
from attune.worker.process import Running, Starter

# A process that the kernel itself holds back does not even heed KILL; a run does not wait for it for ever.
_KILL_PATIENCE: Final = 5.0

_log = structlog.get_logger()


class Processes:
    """`inherited` is what a child may see of our own environment; `grace` the seconds from TERM to KILL."""

    def __init__(
        self, *, clock: Clock, inherited: Mapping[str, str], grace: float, starter: Starter
    ) -> None:
        self._clock = clock
        self._inherited = inherited
        self._grace = grace
        self._descendants = Descendants(clock)
        self._starter = starter

    async def run(
        self, run: Run, *, stdout: Output, stderr: Output, cancel: asyncio.Event
    ) -> Finish:
        async with private_folder(run) as folder:
            with command_of(run, self._inherited, folder) as command:
                child = await self._starter.start(run, command, stdout, stderr)
            stop, exit_code = await self._supervise(run, child, cancel)
        if stop:
            return decide.stopped(stop, run.action.timeout_seconds, exit_code)
        data = None
        if run.action.output_format is not OutputFormat.TEXT:
            data = await asyncio.to_thread(data_of, stdout.text(), run.action.output_format)
        return decide.ended(exit_code, data, stderr.text())

    async def _supervise(
        self, run: Run, child: Running, cancel: asyncio.Event
    ) -> tuple[Stop | None, int | None]:
        """Why it was stopped, if it was, and its exit code; afterwards nothing of it runs."""
        lineage = Lineage(child.pid, f"{EXECUTION}={run.execution_id}".encode())
        self._descendants.add(child.pid)
        settled = False
        try:
            stop = await until_ended(
                child.ended, cancel=cancel, clock=self._clock, timeout=run.action.timeout_seconds
            )
            if not await self._end_all(lineage, stop):
                _log.error("Processes of a run could not be ended.", execution_id=run.execution_id)
            settled = True
        finally:
            if not settled:
                self._descendants.kill_now(lineage)
                child.kill()
            self._descendants.remove(child.pid)
            exit_code = child.close()
            self._descendants.sweep()
        return stop, exit_code

    async def _end_all(self, lineage: Lineage, stop: Stop | None) -> bool:
        end = self._descendants.end
        if stop is None:
            return await end(lineage, signal.SIGKILL, _KILL_PATIENCE, Reach.SESSION)
        return await end(lineage, signal.SIGTERM, self._grace, Reach.EVERYTHING) or await end(
            lineage, signal.SIGKILL, _KILL_PATIENCE, Reach.EVERYTHING
        )
