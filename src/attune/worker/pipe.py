"""The reading end of a child's stream."""

import asyncio
import fcntl
import os
from typing import IO, Final

from attune.worker.output import Output

_CHUNK: Final = 64 * 1024


class Pipe:
    """Each readiness takes one chunk, so that one loud process leaves time for the others.

    What comes while there is no `output` is nobody's, and is dropped.
    """

    def __init__(self, file: IO[bytes], output: Output | None) -> None:
        self.output = output
        self._file = file
        self._loop = asyncio.get_running_loop()
        os.set_blocking(file.fileno(), False)
        self._loop.add_reader(file.fileno(), self._read)

    def drain(self) -> None:
        """The last look."""
        self.take()
        self._close()

    def take(self) -> int:
        """At most what a pipe holds: a writer that goes on for ever is cut off. How much there was."""
        if self._file.closed:
            return 0
        room = left = fcntl.fcntl(self._file.fileno(), fcntl.F_GETPIPE_SZ)
        while left > 0 and (size := self._read()):
            left -= size
        return room - left

    def _read(self) -> int:
        """How many bytes there were; 0 for none now or none any more."""
        try:
            data = os.read(self._file.fileno(), _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self._close()
        elif self.output is not None:
            self.output.feed(data)
        return len(data)

    def _close(self) -> None:
        if not self._file.closed:
            self._loop.remove_reader(self._file.fileno())
            self._file.close()
        if self.output is not None:
            self.output.close()
