"""Executions of an action in processes that stay: each runs one at a time, and as many stay as ran at once."""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from attune.catalog.retrying import Limits
from attune.kernel.clock import Clock
from attune.worker import decide
from attune.worker.badges import pin
from attune.worker.command import command_of
from attune.worker.delivery import delivered, encoded
from attune.worker.descendants import Lineage
from attune.worker.entry import interpreter
from attune.worker.environment import EXECUTION, child_environment
from attune.worker.folders import Folders, Scripts, make_folder
from attune.worker.formats import read_data
from attune.worker.limits import until_ended
from attune.worker.model import Delivery, Finish, Run, Runtime, Stop
from attune.worker.output import Output
from attune.worker.supervision import Supervision
from attune.worker.warm.entries import Entries
from attune.worker.warm.kinds import Kind, Kinds, kind_of
from attune.worker.warm.pool import Key, Pool
from attune.worker.warm.server import Unfit
from attune.worker.warm.servers import Servers
from attune.worker.warm.stayer import Stale, Stayer
from attune.worker.warm.tasks import Task

_TRIES: Final = 3


class Streams(NamedTuple):
    stdout: Output
    stderr: Output


def wants_reuse(run: Run) -> bool:
    """What a process uses is counted over its whole life: an action with such limits has processes of its own."""
    action = run.action
    if not action.reuse or action.runtime is not Runtime.PYTHON or action.inline:
        return False
    return msgspec.structs.replace(action.limits, output_mb=None) == Limits()


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
        self._kinds = Kinds()

    async def run(self, run: Run, streams: Streams, cancel: asyncio.Event) -> Finish:
        """Raise Unfit if the action cannot be run in this way; nothing of it has begun then."""
        if run.action.parameter_delivery is Delivery.FILE:
            stop, exit_code = await self._run_with_file(run, streams, cancel)
        else:
            stop, exit_code = await self._run_task(run, self._task(run), streams, cancel)
        if stop:
            return decide.stopped(stop, run.action.timeout_seconds, exit_code)
        data = await read_data(streams.stdout.text, run.action.output_format)
        return decide.ended(exit_code, data, "" if exit_code == 0 else streams.stderr.text())

    async def close(self) -> None:
        await self.pool.close()

    async def _run_with_file(
        self, run: Run, streams: Streams, cancel: asyncio.Event
    ) -> tuple[Stop | None, int | None]:
        """Only then has the run a folder of its own; the pack's is where it works."""
        async with self._folders.private(run.work_dir) as folder:
            with command_of(run, self._inherited, folder, self._scripts) as command:
                *words, script = command.arguments
                kind = kind_of(tuple(words), command.environment, str(command.folder))
                key = _key(run, script, str(command.folder), kind)
                task = Task(key, command.environment, b"")
                return await self._run_task(run, task, streams, cancel)

    def _task(self, run: Run) -> Task:
        make_folder(run.artifacts_dir)
        environment = child_environment(run, self._inherited)
        script = self._entries.find(run.action)
        words = interpreter(run.action, environment["PATH"])
        folder = str(run.action.pack_dir)
        kind = self._kinds.get(words, environment, folder, brings=bool(run.env_vars))
        stdin = encoded(delivered(run), run.action.parameter_format)
        return Task(_key(run, script, folder, kind), environment, stdin)

    async def _run_task(
        self, run: Run, task: Task, streams: Streams, cancel: asyncio.Event
    ) -> tuple[Stop | None, int | None]:
        """Why it was stopped, if it was, and its exit code."""
        told = task.told()
        try:
            for _ in range(_TRIES):
                stayer = await self.pool.take(task.key, task.request)
                work = stayer.begin(*told, *streams)
                stop = await self._until_over(run, stayer, work, cancel)
                if stop or work.exception() is None:
                    return stop, await self._over(run, task.key, stayer, stop)
                self.pool.dismiss(stayer)
                if not isinstance(work.exception(), Stale):
                    work.result()
        finally:
            told.close()
        raise Unfit("its processes do not stay")

    async def _over(self, run: Run, key: Key, stayer: Stayer, stop: Stop | None) -> int | None:
        """The exit code; a process that may serve again waits for the next run."""
        if stop or not stayer.is_done:
            return await self._end(run, stayer, stop)
        exit_code = stayer.finish()
        self.pool.give_back(key, stayer)
        return exit_code

    async def _until_over(
        self, run: Run, stayer: Stayer, work: asyncio.Future[None], cancel: asyncio.Event
    ) -> Stop | None:
        over = False
        timeout = run.action.timeout_seconds
        try:
            stop = await until_ended(
                work, cancel=cancel, clock=self._clock, timeout=timeout, lasts=stayer.listen
            )
            over = True
        finally:
            if not over:
                self._supervision.descendants.kill_now(_lineage(stayer, run))
                stayer.kill()
                stayer.close()
        return stop

    async def _end(self, run: Run, stayer: Stayer, stop: Stop | None) -> int | None:
        """This run was the process's last: nothing of it stays."""
        stayer.listen()
        now = asyncio.Event()
        if stop:
            now.set()
        end = await self._supervision.until_over(run, stayer, now)
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


def _key(run: Run, script: str, folder: str, kind: Kind | None) -> Key:
    if kind is None:
        raise Unfit("it needs a start of its own")
    return Key(run.action.ref, script, folder, kind)
