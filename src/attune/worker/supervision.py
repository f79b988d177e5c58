"""From a run's first process to the end of its last."""

import asyncio
import signal
from contextlib import ExitStack
from typing import Any, Final

import msgspec
import structlog

from attune.kernel.clock import Clock
from attune.worker.badges import pin
from attune.worker.descendants import Descendants, Lineage, Reach
from attune.worker.environment import EXECUTION
from attune.worker.guardian import Guardian
from attune.worker.limits import until_ended
from attune.worker.model import Run, Stop
from attune.worker.proc import cpu_seconds
from attune.worker.process import Running

# A process that the kernel itself holds back does not even heed KILL; a run does not wait for it for ever.
_KILL_PATIENCE: Final = 5.0
_SECONDS_BETWEEN_COUNTS: Final = 0.2

_log = structlog.get_logger()


class End(msgspec.Struct, frozen=True, kw_only=True):
    """`crowd` is how many processes there were, where that was too many; `cpu` what the first one used, in seconds."""

    exit_code: int | None
    stop: Stop | None = None
    crowd: int | None = None
    cpu: float | None = None


class Supervision:
    """One for a worker: all that it starts shares its `descendants` and its `guardian`.

    `grace` is how many seconds pass between TERM and KILL.
    """

    def __init__(self, clock: Clock, grace: float) -> None:
        self._clock = clock
        self._grace = grace
        self.descendants = Descendants(clock)
        self.guardian = Guardian(clock)
        self._guardian_pid: int | None = None

    def prepare(self) -> None:
        """Before each start; it costs nothing but the first time."""
        self.guardian.be_there()
        if self.guardian.pid != self._guardian_pid:
            if self._guardian_pid is not None:
                self.descendants.remove(self._guardian_pid)
            if self.guardian.pid is not None:
                self.descendants.add(self.guardian.pid)
            self._guardian_pid = self.guardian.pid

    async def until_over(self, run: Run, child: Running, cancel: asyncio.Event) -> End:
        """Afterwards nothing of the run is left, but for daemons of one that ended well."""
        lineage = self._taken_in(run, child)
        settled = False
        try:
            stop, crowd = await self._until_ended(run, child, lineage, cancel)
            if not await self._end_all(lineage, stop, crowd):
                _log.error("Processes of a run could not be ended.", execution_id=run.execution_id)
            settled = True
        finally:
            if not settled:
                self.descendants.kill_now(lineage)
                child.kill()
            cpu = None if run.action.limits.cpu_seconds is None else cpu_seconds(child.pid)
            exit_code = self._let_go(lineage, child)
        return End(exit_code=exit_code, stop=stop, crowd=crowd, cpu=cpu)

    async def close(self) -> None:
        await self.guardian.close()

    def _taken_in(self, run: Run, child: Running) -> Lineage:
        """The guardian hears of it before it has its badge: one with a badge that is not guarded counts as over.

        What the process itself started in the moment before has the worker's badge, and is of its session or its tree
        unless it fled from both at once.
        """
        with ExitStack() as undo:
            undo.callback(child.close)
            undo.callback(child.kill)
            lineage = Lineage(child.pid, f"{EXECUTION}={run.execution_id}".encode())
            self.descendants.add(child.pid)
            undo.callback(self.descendants.remove, child.pid)
            self.guardian.add(lineage.identity)
            pin(lineage.identity)
            undo.pop_all()
        return lineage

    def _let_go(self, lineage: Lineage, child: Running) -> int | None:
        self.descendants.remove(child.pid)
        exit_code = child.close()
        self.guardian.remove(lineage.identity)
        self.descendants.sweep()
        return exit_code

    async def _until_ended(
        self, run: Run, child: Running, lineage: Lineage, cancel: asyncio.Event
    ) -> tuple[Stop | None, int | None]:
        """Why it was stopped, if it was, and how many processes it had, if these were too many."""
        clock, timeout = self._clock, run.action.timeout_seconds
        most = run.action.limits.processes
        if most is None:
            return await until_ended(child.ended, cancel=cancel, clock=clock, timeout=timeout), None
        crowd = asyncio.ensure_future(self._crowd(lineage, most))
        both: set[asyncio.Future[Any]] = {child.ended, crowd}
        either = asyncio.ensure_future(asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED))
        try:
            stop = await until_ended(either, cancel=cancel, clock=clock, timeout=timeout)
            return stop, crowd.result() if crowd.done() and stop is None else None
        finally:
            either.cancel()
            crowd.cancel()

    async def _crowd(self, lineage: Lineage, most: int) -> int:
        """The system counts the processes of a user, not those of a run."""
        while (count := self.descendants.count(lineage)) <= most:
            await self._clock.sleep(_SECONDS_BETWEEN_COUNTS)
        return count

    async def _end_all(self, lineage: Lineage, stop: Stop | None, crowd: int | None) -> bool:
        """A run that is stopped may clean up; one that breeds may not go on to."""
        end = self.descendants.end
        if crowd is not None:
            return await end(lineage, signal.SIGKILL, _KILL_PATIENCE, Reach.EVERYTHING)
        if stop is None:
            return await end(lineage, signal.SIGKILL, _KILL_PATIENCE, Reach.SESSION)
        return await end(lineage, signal.SIGTERM, self._grace, Reach.EVERYTHING) or await end(
            lineage, signal.SIGKILL, _KILL_PATIENCE, Reach.EVERYTHING
        )
