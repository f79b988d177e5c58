"""One process, held by a descriptor: its end can be awaited, and a signal never reaches a later owner of its number."""

import asyncio
import os
import signal


class Watched:
    """`ended` is done when the process is; a child of ours still waits to be reaped then."""

    def __init__(self, pid: int) -> None:
        """Raise ProcessLookupError if there is no such process any more."""
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._on_end)

    def signal(self, number: signal.Signals) -> None:
        """A process that is gone, or that has become another user's, is left alone."""
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except (ProcessLookupError, PermissionError):
            return

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _on_end(self) -> None:
        self._loop.remove_reader(self._descriptor)
        if not self.ended.done():
            self.ended.set_result(None)
