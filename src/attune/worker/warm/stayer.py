"""A process that stays, as the worker sees it: one run at a time, and nothing of one run in the next."""

import asyncio
import os
import socket
from collections.abc import Sequence
from typing import IO, Any

from attune.worker.output import Output
from attune.worker.pipe import Pipe
from attune.worker.warm.forked import Forked
from attune.worker.warm.server import Server, Unfit
from attune.worker.warm.wire import Wire, close_all, pair


class Stale(Exception):
    """The process ends: files that it was started with have changed, or the run before left something. It did not
    begin this one."""


class Stayer:
    """`is_free` after a run that left nothing behind; any other run is the process's last.

    Whether it is shows only when the run has been told to be done: it may say so, and then that it will not run again.
    """

    def __init__(
        self, server: Server, forked: Forked, link: socket.socket, streams: Sequence[IO[bytes]]
    ) -> None:
        self.server = server
        self.is_free = True
        self._forked = forked
        self._pipes = [Pipe(stream, None, listens=False) for stream in streams]
        self._run: asyncio.Future[None] | None = None
        self._code: int | None = None
        self._is_unfit = False
        self._wire = Wire(link, self._heard, self._lost)
        forked.ended.add_done_callback(self._on_end)

    @property
    def pid(self) -> int:
        return self._forked.pid

    @property
    def ended(self) -> asyncio.Future[None]:
        return self._forked.ended

    @property
    def is_gone(self) -> bool:
        return self._forked.ended.done()

    @property
    def is_done(self) -> bool:
        """Whether it has told how the run ended, whatever became of itself since."""
        return self._code is not None

    def begin(
        self, message: bytes, stdin: int | None, stdout: Output, stderr: Output
    ) -> asyncio.Future[None]:
        """Done when the run is over; Stale or Unfit if it was not begun. `stdin` is for what no message can hold."""
        self.is_free = False
        self._code = None
        self._run = asyncio.get_running_loop().create_future()
        for pipe, output in zip(self._pipes, (stdout, stderr), strict=True):
            pipe.output = output
        if self._is_unfit:
            self._decline(Unfit())
        self._wire.send(message, () if stdin is None else (stdin,))
        if self._forked.ended.done():
            self._on_end(self._forked.ended)
        return self._run

    def listen(self) -> None:
        """To what it writes, as it comes: whoever ends within a moment has not written more than a pipe holds."""
        for pipe in self._pipes:
            pipe.listen()

    def finish(self) -> int | None:
        """The run's exit code, if its process stays. All that it wrote is with its outputs now."""
        for pipe in self._pipes:
            pipe.rest()
            pipe.take()
            if pipe.output is not None:
                pipe.output.close()
            pipe.output = None
        self._run = None
        return self._code

    def close(self) -> int | None:
        """Take the last of its output; its exit code, None if it has not ended."""
        for pipe in self._pipes:
            pipe.drain()
        self._wire.close()
        return self._forked.reap()

    def let_go(self) -> None:
        """An idle one ends by itself, and is reaped then."""
        self.is_free = False
        self.listen()
        self._wire.close()
        if self._forked.ended.done():
            self.close()
        else:
            self._forked.ended.add_done_callback(lambda _: self.close())

    async def until_ended(self, patience: float) -> None:
        """After `let_go`: wait for it, and lose patience."""
        if not self._forked.ended.done():
            await asyncio.wait({self._forked.ended}, timeout=patience)
        if not self._forked.ended.done():
            self._forked.kill()
            await asyncio.wait({self._forked.ended}, timeout=patience)

    def kill(self) -> None:
        self._forked.kill_in_place()

    def _heard(self, message: bytes) -> None:
        """That it is unfit, or that it will not run again, it may say before it is asked for anything."""
        word, *code = message.split()
        self._is_unfit = word == b"unfit"
        if not code:
            self.is_free = False
        if self._run is None or self._run.done():
            return
        if not code:
            self._decline(Unfit() if self._is_unfit else Stale())
        else:
            self._code = int(code[0])
            self.is_free = True
            self._run.set_result(None)

    def _decline(self, reason: Exception) -> None:
        """The outputs go on to whoever runs it instead."""
        for pipe in self._pipes:
            pipe.output = None
        if self._run is not None:
            self._run.set_exception(reason)

    def _lost(self) -> None:
        self.is_free = False

    def _on_end(self, _ended: asyncio.Future[None]) -> None:
        """What it said before its end still counts; what it was told and has not heard was not begun."""
        self._wire.read()
        self.is_free = False
        if self._run is None or self._run.done():
            return
        if self._wire.unread:
            self._decline(Stale())
        else:
            self._run.set_result(None)


async def start(server: Server, request: dict[str, Any]) -> Stayer:
    """Raise what `Server.fork` raises."""
    ours, theirs = pair()
    reading, writing = zip(os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC), strict=True)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    with theirs:
        try:
            forked = await server.fork(request, (nothing, *writing, theirs.fileno()))
        except BaseException:
            ours.close()
            close_all(reading)
            raise
        finally:
            close_all((nothing, *writing))
    streams = [os.fdopen(descriptor, "rb", 0) for descriptor in reading]
    return Stayer(server, forked, ours, streams)
