"""A TCP proxy that can fail on demand, for faults between a client and a server that is well."""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from harness.ports import LOOPBACK, free_port

CHUNK = 65_536
CALL_BOUND = 10.0
# Closing a socket that lingers for no time resets the connection instead of ending it politely.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class FaultProxy:
    """Forwards to host and port from a loopback port of its own, which stays the same until close().

    It runs in a thread with an event loop of its own, so a test may block, and may call it from any thread.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = free_port()
        self._target = (host, port)
        self._links: set[_Link] = set()
        self._delay = 0.0
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self.heal()

    @classmethod
    def to(cls, url: str) -> Self:
        """A proxy to the host and port of an address."""
        parts = urlsplit(url)
        if parts.hostname is None or parts.port is None:
            raise ValueError(f"no host and port in {url!r}")
        return cls(parts.hostname, parts.port)

    def url_for(self, url: str) -> str:
        """The same address, by way of this proxy."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{LOOPBACK}:{self.port}").geturl()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._links)

    def cut(self) -> None:
        """Reset every connection, and refuse new ones."""
        self._call(self._cut())

    def stall(self) -> None:
        """Swallow everything: connections stay open and new ones are accepted, but nothing gets through."""
        self._call(self._stall())

    def slow(self, delay: float) -> None:
        """Hold back whatever passes, in either direction, for so many seconds."""
        self._call(self._slow(delay))

    def heal(self) -> None:
        """Forward again, at once; what a stall held back arrives late."""
        self._call(self._heal())

    def close(self) -> None:
        """End every connection and the thread; safe to call twice."""
        if not self._thread.is_alive():
            return
        self._call(self._cut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_BOUND)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, step: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result(CALL_BOUND)

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        links = list(self._links)
        for link in links:
            link.reset()
        await asyncio.gather(*(link.task for link in links), return_exceptions=True)
        # An aborted transport lets go of its socket in the loop's next round.
        await asyncio.sleep(0)

    async def _stall(self) -> None:
        await self._listen()
        self._flowing.clear()

    async def _slow(self, delay: float) -> None:
        await self._listen()
        self._delay = delay
        self._flowing.set()

    async def _heal(self) -> None:
        await self._slow(0.0)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, LOOPBACK, self.port)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(reader, writer)
        self._links.add(link)
        link.task = asyncio.create_task(self._serve(link))

    async def _serve(self, link: "_Link") -> None:
        try:
            await self._flowing.wait()
            reader, writer = await asyncio.open_connection(*self._target)
            link.writers.append(writer)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(link.reader, writer))
                pumps.create_task(self._pump(reader, link.writers[0]))
        except (OSError, ExceptionGroup):
            pass  # one side is gone; the other side hears of it now
        finally:
            link.close()
            self._links.discard(link)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Even the end of a stream waits while nothing flows."""
        while True:
            data = await reader.read(CHUNK)
            await self._flowing.wait()
            if self._delay:
                await asyncio.sleep(self._delay)
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.write_eof()


class _Link:
    """One client's connection and, once it is made, the connection to the target."""

    task: asyncio.Task[None]

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writers = [writer]

    def reset(self) -> None:
        for writer in self.writers:
            raw = writer.get_extra_info("socket")
            if raw.fileno() >= 0:  # else the client was first
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            writer.transport.abort()
        self.task.cancel()

    def close(self) -> None:
        for writer in self.writers:
            writer.close()
