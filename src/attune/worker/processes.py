"""Runs an action as a process, and leaves none behind."""

import asyncio
from collections.abc import Mapping

from attune.kernel.clock import Clock
from attune.worker import decide
from attune.worker.breaches import breach, crowded
from attune.worker.command import command_of
from attune.worker.environment import inheritable
from attune.worker.folders import Folders, Scripts
from attune.worker.formats import read_data
from attune.worker.model import Finish, Run
from attune.worker.output import Output
from attune.worker.process import Starter
from attune.worker.supervision import Supervision


class Processes:
    """`inherited` is what a child may see of our own environment; `grace` the seconds from TERM to KILL."""

    def __init__(
        self, *, clock: Clock, inherited: Mapping[str, str], grace: float, starter: Starter
    ) -> None:
        self._inherited = inheritable(inherited)
        self.supervision = Supervision(clock, grace)
        self.folders = Folders()
        self.scripts = Scripts()
        self._starter = starter

    async def run(
        self, run: Run, *, stdout: Output, stderr: Output, cancel: asyncio.Event
    ) -> Finish:
        async with self.folders.private(run.work_dir) as folder:
            with command_of(run, self._inherited, folder, self.scripts) as command:
                self.supervision.prepare()
                child = await self._starter.start(run, command, stdout, stderr)
            end = await self.supervision.until_over(run, child, cancel)
        await self.scripts.tidy()
        limits = run.action.limits
        if end.stop:
            return decide.stopped(end.stop, run.action.timeout_seconds, end.exit_code)
        if end.crowd and limits.processes:
            return decide.failed(crowded(limits.processes, end.crowd), end.exit_code)
        data = await read_data(stdout.text, run.action.output_format)
        words = stderr.text()
        return decide.ended(
            end.exit_code, data, words, breach(limits, end.exit_code, words, end.cpu)
        )

    async def close(self) -> None:
        """When nothing runs any more, or nothing is to be waited for. Twice is safe."""
        await self.supervision.close()
        await self.folders.close()
        await self.scripts.tidy(0)
