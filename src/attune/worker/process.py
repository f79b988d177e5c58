"""One child process: started with nothing of ours but what its command names, its streams read to their end."""

import asyncio
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final, Protocol

import msgspec

from attune.catalog.retrying import Limits
from attune.worker.errors import CannotRun
from attune.worker.model import Run
from attune.worker.output import Output
from attune.worker.pidfd import Watched
from attune.worker.pipe import Pipe
from attune.worker.rlimits import wrapped

_DEATH: Final = 1.0


class Running(Protocol):
    """A run's first process, in a session of its own, while it runs."""

    @property
    def pid(self) -> int: ...

    @property
    def ended(self) -> asyncio.Future[None]:
        """Of the process itself; others may still hold its streams."""

    def close(self) -> int | None:
        """Take what is left in the pipes and reap; the exit code as a shell tells it, None if it cannot die."""

    def kill(self) -> None:
        """The process alone, and wait for its end in place."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """`stdin` and `descriptors` are open descriptors; the child gets these and no others."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    stdin: int
    descriptors: tuple[int, ...] = ()
    limits: Limits = Limits()


class Child:
    """The process is reaped in `close` and not before, so its number stays its own for as long as we signal."""

    def __init__(self, command: Command, stdout: Output, stderr: Output) -> None:
        """Raise CannotRun if the system refuses to start it."""
        self._popen = _start(command)
        with ExitStack() as undo:
            undo.callback(self.kill)
            self._watched = Watched(self._popen.pid)
            self._pipes = [
                Pipe(_opened(self._popen.stdout), stdout),
                Pipe(_opened(self._popen.stderr), stderr),
            ]
            undo.pop_all()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def ended(self) -> asyncio.Future[None]:
        """Of the process itself; others may still hold its streams."""
        return self._watched.ended

    def close(self) -> int | None:
        """Take what is left in the pipes and reap; the exit code as a shell tells it, None if it cannot die.

        Whoever still holds a stream is not waited for: what was written before the end is in the pipe.
        """
        for pipe in self._pipes:
            pipe.drain()
        self._watched.close()
        code = self._popen.poll()
        return 128 - code if code is not None and code < 0 else code

    def kill(self) -> None:
        """The process alone, and wait for its end in place: for when there is no time to be polite."""
        self._popen.kill()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_DEATH)


class Starter:
    """How a run's first process comes about."""

    async def start(self, run: Run, command: Command, stdout: Output, stderr: Output) -> Running:  # noqa: ARG002 - others choose by it
        """Raise CannotRun if the system refuses to start it."""
        return Child(command, stdout, stderr)


def _start(command: Command) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            wrapped(command.arguments, command.limits, command.environment.get("PATH", "")),
            env=command.environment,
            cwd=command.folder,
            stdin=command.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=command.descriptors,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else "an argument holds a NUL character"
        )
        raise CannotRun(f"The process could not be started: {reason}.") from None


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise CannotRun("The process was started without its streams.")
    return stream
