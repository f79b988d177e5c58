"""A process that a warm interpreter forked: no child of ours, and yet as well held as one."""

import asyncio
import os
import select
import signal
import time
from contextlib import suppress
from typing import Final, Protocol

from attune.worker.pidfd import Watched
from attune.worker.proc import look

_DEATH: Final = 1.0


class Parent(Protocol):
    def discharge(self, pid: int) -> None:
        """Nobody will signal this one any more: its body may go."""

    def listen(self, seconds: float) -> None:
        """Hear in place what the parent says next, within that time."""


class Forked:
    """Its parent keeps its body until it is discharged, so its number stays its own for as long as we signal.

    If the parent itself dies, the process becomes ours: this one is the reaper of orphans.
    """

    def __init__(self, pid: int, parent: Parent) -> None:
        self.pid = pid
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parent = parent
        self._code: int | None = None
        self._watched: Watched | None = None
        self._adopted = False

    def end(self, code: int | None) -> None:
        """As its parent tells it."""
        self._code = code
        if not self.ended.done():
            self.ended.set_result(None)

    def adopt(self) -> None:
        """Its parent is gone."""
        self._adopted = True
        if self.ended.done():
            return
        try:
            self._watched = Watched(self.pid)
        except ProcessLookupError:
            self.end(None)
            return
        self._watched.ended.add_done_callback(lambda _: self.end(None))

    def reap(self) -> int | None:
        """The exit code as a shell tells it; None if it has not ended, or if nobody can tell."""
        if self._watched is not None:
            self._watched.close()
        self._hear_of_end()
        if self._adopted:
            return _reaped(self.pid, self._code)
        self._parent.discharge(self.pid)
        return self._code

    def _hear_of_end(self) -> None:
        """Whoever saw it die may be faster than the word of its parent, which alone knows the code."""
        until = time.monotonic() + _DEATH
        while self._code is None and not self._adopted and (left := until - time.monotonic()) > 0:
            process = look(self.pid)
            if process is not None and process.lives:
                return
            self._parent.listen(left)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def kill_in_place(self) -> None:
        """And wait for its end, for when there is no time to be polite."""
        self.kill()
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                select.select([descriptor], [], [], _DEATH)
            finally:
                os.close(descriptor)


def _reaped(pid: int, told: int | None) -> int | None:
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return told
    if not found:
        return told
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code
