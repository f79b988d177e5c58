"""The reading end of a child's stream."""

import asyncio
import fcntl
import os
from typing import IO, Final

from attune.worker.output import Output

_CHUNK: Final = 64 * 1024


class Pipe:
    """Each readiness takes one chunk, so that one loud process leaves time for the others.

    What comes while there is no `output` is nobody's, and is dropped. One that does not listen is read when it is
    asked to be: what is written until then waits, as much of it as a pipe holds.
    """

    def __init__(self, file: IO[bytes], output: Output | None, listens: bool = True) -> None:
        self.output = output
        self._file = file
        self._descriptor = file.fileno()
        self._loop = asyncio.get_running_loop()
        self._listens = False
        os.set_blocking(self._descriptor, False)
        if listens:
            self.listen()

    def listen(self) -> None:
        if not self._listens and not self._file.closed:
            self._listens = True
            self._loop.add_reader(self._descriptor, self._read)

    def rest(self) -> None:
        """Listen no more."""
        if self._listens:
            self._listens = False
            self._loop.remove_reader(self._descriptor)

    def drain(self) -> None:
        """The last look."""
        self.take()
        self._close()
        if self.output is not None:
            self.output.close()

    def take(self) -> int:
        """At most what a pipe holds: a writer that goes on for ever is cut off. How much there was."""
        size = taken = self._read()
        if size < _CHUNK:
            return taken
        room = fcntl.fcntl(self._descriptor, fcntl.F_GETPIPE_SZ)
        while size == _CHUNK and taken < room:
            size = self._read()
            taken += size
        return taken

    def _read(self) -> int:
        """How many bytes there were, less than a chunk if that was all; 0 for none now or none any more."""
        if self._file.closed:
            return 0
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self._close()
        elif self.output is not None:
            self.output.feed(data)
        return len(data)

    def _close(self) -> None:
        self.rest()
        self._file.close()
