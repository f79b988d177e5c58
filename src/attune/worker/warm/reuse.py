"""Executions of an action in processes that stay: each runs one at a time, and as many stay as ran at once."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from attune.catalog.retrying import Limits
from attune.kernel.clock import Clock
from attune.worker import decide
from attune.worker.badges import pin
from attune.worker.command import command_of
from attune.worker.delivery import delivered, encoded, memory_file
from attune.worker.descendants import Lineage
from attune.worker.entry import interpreter
from attune.worker.environment import EXECUTION, child_environment
from attune.worker.folders import Folders, Scripts, make_folder
from attune.worker.formats import read_data
from attune.worker.limits import until_ended
from attune.worker.model import Delivery, Finish, Run, Runtime, Stop
from attune.worker.output import Output
from attune.worker.process import Command
from attune.worker.supervision import Supervision
from attune.worker.warm.entries import Entries
from attune.worker.warm.kinds import kind_of
from attune.worker.warm.pool import Key, Pool
from attune.worker.warm.server import Unfit
from attune.worker.warm.servers import Servers
from attune.worker.warm.starter import request_of
from attune.worker.warm.stayer import Stale, Stayer
from attune.worker.warm.wire import LONGEST
from attune.worker.warm.wire import encoded as encoded_message

_TRIES: Final = 3


class Streams(NamedTuple):
    stdout: Output
    stderr: Output


def wants_reuse(run: Run) -> bool:
    """What a process uses is counted over its whole life: an action with such limits has processes of its own."""
    action = run.action
    limits = msgspec.structs.replace(action.limits, output_mb=None)
    reusable = action.runtime is Runtime.PYTHON and not action.inline and limits == Limits()
    return action.reuse and reusable


class Reuse:
    def __init__(
        self,
        *,
        clock: Clock,
        inherited: Mapping[str, str],
        servers: Servers,
        supervision: Supervision,
        folders: Folders,
        scripts: Scripts,
    ) -> None:
        self.pool = Pool(servers, self._welcome)
        self._clock = clock
        self._inherited = inherited
        self._supervision = supervision
        self._folders = folders
        self._scripts = scripts
        self._entries = Entries()

    async def run(self, run: Run, streams: Streams, cancel: asyncio.Event) -> Finish:
        """Raise Unfit if the action cannot be run in this way; nothing of it has begun then."""
        async with self._command(run) as command:
            for _ in range(_TRIES):
                try:
                    stop, exit_code = await self._run_once(run, command, streams, cancel)
                    break
                except Stale:
                    continue
            else:
                raise Unfit("its files change all the time")
        if stop:
            return decide.stopped(stop, run.action.timeout_seconds, exit_code)
        data = await read_data(streams.stdout.text, run.action.output_format)
        return decide.ended(exit_code, data, streams.stderr.text())

    async def close(self) -> None:
        await self.pool.close()

    @asynccontextmanager
    async def _command(self, run: Run) -> AsyncIterator[Command]:
        """A folder of the run's own only for the file that it asks for; the pack's is where it works."""
        if run.action.parameter_delivery is Delivery.FILE:
            async with self._folders.private(run.work_dir) as folder:
                with command_of(run, self._inherited, folder, self._scripts) as command:
                    yield command
            return
        make_folder(run.artifacts_dir)
        environment = child_environment(run, self._inherited)
        file = self._entries.find(run.action)
        stdin = memory_file(encoded(delivered(run), run.action.parameter_format))
        try:
            yield Command(
                arguments=(*interpreter(run.action, environment["PATH"]), file),
                environment=environment,
                folder=run.action.pack_dir or Path("/"),
                stdin=stdin,
            )
        finally:
            os.close(stdin)

    async def _run_once(
        self, run: Run, command: Command, streams: Streams, cancel: asyncio.Event
    ) -> tuple[Stop | None, int | None]:
        """Why it was stopped, if it was, and its exit code."""
        kind = kind_of(command)
        if kind is None:
            raise Unfit("it needs a start of its own")
        key = Key(run.action.ref, command.arguments[-1], run.action.pack_dir, kind)
        request = request_of(command)
        message = encoded_message(request)
        if len(message) > LONGEST:
            raise Unfit("its environment is too large for a message")
        stayer = await self.pool.take(key, request)
        work = stayer.begin(message, command.stdin, *streams)
        stop = await self._until_over(run, stayer, work, cancel)
        if not stop and stayer.is_free:
            exit_code = stayer.finish()
            self.pool.give_back(key, stayer)
            return None, exit_code
        return stop, await self._end(run, stayer, work, stop)

    async def _until_over(
        self, run: Run, stayer: Stayer, work: asyncio.Future[None], cancel: asyncio.Event
    ) -> Stop | None:
        over = False
        timeout = run.action.timeout_seconds
        try:
            stop = await until_ended(work, cancel=cancel, clock=self._clock, timeout=timeout)
            over = True
        finally:
            if not over:
                self._supervision.descendants.kill_now(_lineage(stayer, run))
                stayer.kill()
                stayer.close()
        return stop

    async def _end(
        self, run: Run, stayer: Stayer, work: asyncio.Future[None], stop: Stop | None
    ) -> int | None:
        """This run was the process's last: nothing of it stays."""
        now = asyncio.Event()
        if stop:
            now.set()
        end = await self._supervision.until_over(run, stayer, now)
        if not stop:
            work.result()
        return end.exit_code

    def _welcome(self, stayer: Stayer) -> None:
        """It is guarded like a run, for as long as it stays."""
        lineage = Lineage(stayer.pid, b"")
        around = self._supervision
        around.descendants.add(stayer.pid)
        around.guardian.add(lineage.identity)
        pin(lineage.identity)

        def leave(_ended: asyncio.Future[None]) -> None:
            around.guardian.remove(lineage.identity)
            around.descendants.remove(stayer.pid)

        stayer.ended.add_done_callback(leave)


def _lineage(stayer: Stayer, run: Run) -> Lineage:
    return Lineage(stayer.pid, f"{EXECUTION}={run.execution_id}".encode())
