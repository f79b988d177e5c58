"""Runs an action to its end, whatever it does: every way it can go ends in an outcome."""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Final

import msgspec
import structlog

from attune.kernel.clock import Clock
from attune.kernel.statuses import ExecutionStatus
from attune.worker import decide
from attune.worker.environment import inheritable
from attune.worker.errors import CannotRun
from attune.worker.http_request import http_request
from attune.worker.limits import kept_bytes, until_ended
from attune.worker.model import (
    Finish,
    Outcome,
    Result,
    Run,
    RunnerSettings,
    Runtime,
    Stop,
    Stream,
)
from attune.worker.native import CORE, INSTANT, Native, NativeEnd, Surroundings
from attune.worker.output import OnOutput, Output, unheard
from attune.worker.processes import Processes
from attune.worker.warm.reuse import Reuse, Streams, wants_reuse
from attune.worker.warm.server import Unfit
from attune.worker.warm.servers import Servers
from attune.worker.warm.starter import WarmStarter

NATIVES: Final[Mapping[str, Native]] = MappingProxyType({**CORE, "core.http_request": http_request})

_DEFAULTS: Final = RunnerSettings()

_log = structlog.get_logger()


class Runner:
    """One for a worker; it runs any number of actions at once. `environment` is the worker's own."""

    def __init__(
        self,
        *,
        clock: Clock,
        environment: Mapping[str, str],
        natives: Mapping[str, Native] = NATIVES,
        settings: RunnerSettings = _DEFAULTS,
    ) -> None:
        self._clock = clock
        self._natives = natives
        self._settings = settings
        self._servers = Servers()
        inherited = inheritable(environment)
        self._processes = Processes(
            clock=clock,
            inherited=inherited,
            grace=settings.grace,
            starter=WarmStarter(self._servers),
        )
        self._reuse = Reuse(
            clock=clock,
            inherited=inherited,
            servers=self._servers,
            supervision=self._processes.supervision,
            folders=self._processes.folders,
            scripts=self._processes.scripts,
        )

    async def run(
        self, run: Run, *, cancel: asyncio.Event, on_output: OnOutput = unheard
    ) -> Outcome:
        """Never raise for anything the action does. `on_output` must not block: it queues, or it drops."""
        if cancel.is_set():
            return _never_started()
        begun = self._begun(run, on_output)
        return self._outcome(begun, await self._finish(run, begun, cancel))

    def run_at_once(self, run: Run, *, on_output: OnOutput = unheard) -> Outcome | None:
        """The same for an action that has nothing to wait for; None for every other."""
        if run.action.runtime is not Runtime.NATIVE or run.action.ref not in INSTANT:
            return None
        begun = self._begun(run, on_output)
        try:
            finish = self._instant_finish(run, begun.stdout)
        except Exception as error:  # noqa: BLE001 - the edge, as below
            finish = _failed(run, error)
        return self._outcome(begun, finish)

    def _begun(self, run: Run, on_output: OnOutput) -> "_Begun":
        kept = kept_bytes(run.action.limits, self._settings.kept_bytes)
        return _Begun(
            at=self._clock.now(),
            moment=self._clock.monotonic(),
            stdout=Output(Stream.STDOUT, on_output, kept),
            stderr=Output(Stream.STDERR, on_output, kept),
        )

    def _outcome(self, begun: "_Begun", finish: Finish) -> Outcome:
        result = Result(
            exit_code=finish.exit_code,
            duration_ms=round((self._clock.monotonic() - begun.moment) * 1000),
            succeeded=finish.status is ExecutionStatus.COMPLETED,
            stdout=begun.stdout.text(),
            stderr=begun.stderr.text(),
            data=finish.data,
            error=msgspec.UNSET if finish.error is None else finish.error,
        )
        return Outcome(status=finish.status, result=result, started_at=begun.at)

    async def close(self) -> None:
        """End the interpreters that wait for work; call it when nothing runs any more. It may be used again."""
        await self._reuse.close()
        await self._servers.close()
        await self._processes.close()

    async def _finish(self, run: Run, begun: "_Begun", cancel: asyncio.Event) -> Finish:
        stdout, stderr = begun.stdout, begun.stderr
        try:
            if run.action.runtime is Runtime.NATIVE:
                return await self._run_native(run, stdout, cancel)
            if wants_reuse(run):
                with suppress(Unfit):
                    return await self._reuse.run(run, Streams(stdout, stderr), cancel)
            return await self._processes.run(run, stdout=stdout, stderr=stderr, cancel=cancel)
        except Exception as error:  # noqa: BLE001 - the edge: an execution must end even by a fault of ours
            return _failed(run, error)

    async def _run_native(self, run: Run, stdout: Output, cancel: asyncio.Event) -> Finish:
        if run.action.ref in INSTANT:
            return self._instant_finish(run, stdout)
        native = self._natives.get(run.action.ref)
        if native is None:
            raise CannotRun(f"There is no native action {run.action.ref}.")
        timeout = run.action.timeout_seconds
        try:
            running = native(run.parameters, self._around(stdout))
            end = await self._native_end(running, timeout, cancel)
        finally:
            stdout.close()
        if isinstance(end, Stop):
            return decide.stopped(end, timeout)
        return decide.ended(end.exit_code, end.data, end.error or "")

    def _instant_finish(self, run: Run, stdout: Output) -> Finish:
        try:
            end = INSTANT[run.action.ref](run.parameters, self._around(stdout))
        finally:
            stdout.close()
        return decide.ended(end.exit_code, end.data, end.error or "")

    def _around(self, stdout: Output) -> Surroundings:
        return Surroundings(lambda text: stdout.feed(text.encode()), self._clock)

    async def _native_end(
        self, running: Awaitable[NativeEnd], timeout: float | None, cancel: asyncio.Event
    ) -> NativeEnd | Stop:
        work = asyncio.ensure_future(running)
        try:
            stop = await until_ended(work, cancel=cancel, clock=self._clock, timeout=timeout)
        finally:
            if work.cancel():
                await asyncio.wait({work})
        return stop or work.result()


class _Begun(msgspec.Struct, frozen=True):
    """When it began, by both clocks, and what it says."""

    at: datetime
    moment: float
    stdout: Output
    stderr: Output


def _failed(run: Run, error: Exception) -> Finish:
    if isinstance(error, CannotRun):
        return decide.failed(error.message)
    _log.error("An action could not be run.", execution_id=run.execution_id, exc_info=error)
    return decide.failed(f"Attune failed to run the action ({type(error).__name__}).")


def _never_started() -> Outcome:
    result = Result(
        exit_code=None,
        duration_ms=0,
        succeeded=False,
        error="The action was cancelled before it started.",
    )
    return Outcome(status=ExecutionStatus.CANCELLED, result=result, started_at=None)
