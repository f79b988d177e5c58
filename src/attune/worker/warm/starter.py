"""Starts Python actions from a warm interpreter, and everything else as a process of its own."""

import os
from typing import Any, Final

from attune.worker.environment import EXECUTION
from attune.worker.model import Run, Runtime
from attune.worker.output import Output
from attune.worker.pipe import Pipe
from attune.worker.process import Command, Running, Starter
from attune.worker.rlimits import rlimits_of
from attune.worker.warm.forked import Forked
from attune.worker.warm.kinds import Kind, kind_of
from attune.worker.warm.server import Gone, Server, Unfit
from attune.worker.warm.servers import Servers
from attune.worker.warm.wire import close_all

_TRIES: Final = 3


class WarmStarter(Starter):
    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def start(self, run: Run, command: Command, stdout: Output, stderr: Output) -> Running:
        """A server that dies before it began the run is replaced; that nothing was started is certain then."""
        kind = _kind(command) if run.action.runtime is Runtime.PYTHON else None
        if kind is not None:
            for _ in range(_TRIES):
                try:
                    server = await self._servers.get(kind)
                    return await _forked(server, command, stdout, stderr)
                except Gone:
                    continue
                except Unfit:
                    break
        return await super().start(run, command, stdout, stderr)


class WarmChild:
    """A forked process and the pipes from it."""

    def __init__(self, forked: Forked, pipes: list[Pipe]) -> None:
        self._forked = forked
        self._pipes = pipes
        self.pid = forked.pid
        self.ended = forked.ended

    def close(self) -> int | None:
        for pipe in self._pipes:
            pipe.drain()
        return self._forked.reap()

    def kill(self) -> None:
        self._forked.kill_in_place()


def _kind(command: Command) -> Kind | None:
    if command.descriptors:
        return None
    return kind_of(command.arguments[:-1], command.environment, str(command.folder))


def _request(command: Command) -> dict[str, Any]:
    """What a forked process is told."""
    return {
        "arguments": command.arguments[-1:],
        "environment": command.environment,
        "folder": str(command.folder),
        "rlimits": rlimits_of(command.limits),
        "marks": [EXECUTION],
    }


async def _forked(server: Server, command: Command, stdout: Output, stderr: Output) -> WarmChild:
    reading, writing = zip(_pipe(), _pipe(), strict=True)
    try:
        forked = await server.fork(_request(command), (command.stdin, *writing))
    except BaseException:
        close_all(reading)
        raise
    finally:
        close_all(writing)
    files = [os.fdopen(descriptor, "rb", 0) for descriptor in reading]
    return WarmChild(forked, [Pipe(files[0], stdout), Pipe(files[1], stderr)])


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)
