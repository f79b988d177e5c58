"""A process beside the worker that ends all runs if the worker is killed and cannot do it itself."""

import asyncio
import os
import signal
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from attune.kernel.clock import Clock
from attune.worker.badges import wear
from attune.worker.pidfd import Watched
from attune.worker.proc import Identity, myself

# Two modules of ours without the packages around them, which would load much that it has no use for.
_PROGRAM: Final = """\
import sys
for name, path in (("attune", []), ("attune.worker", [sys.argv[1]])):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = path
from attune.worker.guarding import main
from attune.worker.proc import Identity
main(Identity(int(sys.argv[2]), int(sys.argv[3])), int(sys.argv[4]))
"""
# One that cannot live is not started for every run.
_SECONDS_BETWEEN_STARTS: Final = 10.0
_PATIENCE: Final = 2.0

_log = structlog.get_logger()


class Guardian:
    """It ends by itself when nobody holds the pipe to it and nothing is left to guard."""

    def __init__(self, clock: Clock) -> None:
        self.pid: int | None = None
        self._clock = clock
        self._worker = myself()
        self._badge = wear()
        self._runs: dict[int, Identity] = {}
        self._pipe: int | None = None
        self._hang_up: weakref.finalize[..., Guardian] | None = None
        self._started_at: float | None = None

    def be_there(self) -> None:
        """Before the first process of a run is started: one that nobody could tell of yet is known by its badge."""
        if self._pipe is None:
            self._start()

    def add(self, run: Identity) -> None:
        self._runs[run.pid] = run
        self._tell(_plus(run))

    def remove(self, run: Identity) -> None:
        if self._runs.get(run.pid) == run:
            del self._runs[run.pid]
            if self._pipe is not None:
                self._tell(f"-{run.pid}\n")

    async def close(self) -> None:
        """Twice is safe. Whatever still runs stays guarded until this process ends; else the guardian ends now."""
        self._disconnect()
        if self.pid is None or self._runs:
            return
        watched = Watched(self.pid)
        try:
            await asyncio.wait({watched.ended}, timeout=_PATIENCE)
        finally:
            watched.close()
            self._reap()

    def _disconnect(self) -> None:
        if self._hang_up is not None:
            self._hang_up()
        self._hang_up = self._pipe = None

    def _reap(self) -> bool:
        """Whether it has ended."""
        if self.pid is None:
            return True
        with suppress(ChildProcessError):
            if os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                return False
        self.pid = None
        return True

    def _tell(self, lines: str) -> None:
        """Without ever waiting. One that is gone or does not listen is replaced, and the new one told of everything."""
        if self._pipe is None:
            self._start()
            return
        try:
            os.write(self._pipe, lines.encode())
        except (BrokenPipeError, BlockingIOError):
            _log.warning("The guardian of the worker's processes is replaced.", pid=self.pid)
            self._dismiss()
            self._start()

    def _dismiss(self) -> None:
        self._disconnect()
        if not self._reap() and self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)

    def _start(self) -> None:
        if not self._reap() or not self._may_start():
            return
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            self.pid = _spawn(self._worker, self._badge, reading)
        except OSError as error:
            os.close(writing)
            _log.error("The worker's processes have no guardian.", reason=error.strerror)
            return
        finally:
            os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
        self._hang_up = weakref.finalize(self, os.close, writing)
        if self._runs:
            self._tell("".join(map(_plus, self._runs.values())))

    def _may_start(self) -> bool:
        now = self._clock.monotonic()
        if self._started_at is not None and now - self._started_at < _SECONDS_BETWEEN_STARTS:
            return False
        self._started_at = now
        return True


def _plus(run: Identity) -> str:
    return f"+{run.pid} {run.started}\n"


def _spawn(worker: Identity, badge: int, reading: int) -> int:
    """In a session of its own, with nothing of ours but the pipe."""
    numbers = map(str, (worker.pid, worker.started, badge))
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-ISc", _PROGRAM, str(Path(__file__).parent), *numbers],
        {},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
    )
