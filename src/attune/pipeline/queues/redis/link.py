"""The connection to Redis: scripts by their digest, bounds on time, and errors in our words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError as Disconnected,
)
from redis.exceptions import (
    InvalidResponse,
    NoScriptError,
    ResponseError,
)
from redis.exceptions import (
    TimeoutError as TimedOut,
)

from attune.kernel.clock import Clock
from attune.kernel.errors import InvalidSettings, QueueLost, QueueUnavailable
from attune.kernel.urls import masked
from attune.pipeline.queues.redis.lua import Script
from attune.pipeline.queues.redis.scripts import VERIFY

# A refusal counts, too: one that is out of memory, read-only or has foreign keys under our names is of no use.
# A RuntimeError is what uvloop has for a socket that has just closed.
_TROUBLE: Final = (Disconnected, TimedOut, ResponseError, InvalidResponse, OSError, RuntimeError)
_CONNECTIONS: Final = 16
_SCAN: Final = 500
# After a failure nobody waits for this server again for so long, in seconds.
_REST: Final = 1.0


class RedisLink:
    """Never tries a call again by itself: one whose answer was lost may have been carried out.

    `timeout` bounds each wait of a call (for a connection, for the answer), in seconds. After a failure every call
    fails at once for a second, so that a server that hangs costs its callers one wait and not one each.
    """

    def __init__(self, url: str, clock: Clock, timeout: float = 2.0) -> None:
        self._server = masked(url)
        self._clock = clock
        self._resting_until = float("-inf")
        self._client = Redis.from_pool(_pool(url, timeout))

    async def close(self) -> None:
        await self._client.aclose()

    async def call(self, script: Script, *arguments: str | bytes | int) -> Any:
        """What the script answers; `QueueLost` if it found no marker."""
        async with self._watched():
            answer = await self._evaluated(script, arguments)
        if answer is None:
            raise QueueLost(f"Redis at {self._server} does not hold the whole queue.")
        return answer

    async def command(self, *words: str | bytes | int) -> Any:
        async with self._watched():
            return await self._client.execute_command(*words)  # type: ignore[no-untyped-call]

    async def scan(self, command: str, *words: str) -> AsyncIterator[list[bytes]]:
        """The names in each portion of a SCAN, or of a ZSCAN or SSCAN, whose first word is the key."""
        key, rest = ((), words) if command == "SCAN" else (words[:1], words[1:])
        cursor: bytes | int = 0
        while True:
            cursor, found = await self.command(command, *key, cursor, *rest, "COUNT", _SCAN)
            yield [name for name, _ in found] if command == "ZSCAN" else found
            if int(cursor) == 0:
                return

    async def _evaluated(self, script: Script, arguments: tuple[str | bytes | int, ...]) -> Any:
        """A server that does not know the script may be a new process with old data, so that is looked at first."""
        try:
            return await self._client.evalsha(script.sha, 0, *arguments)
        except NoScriptError:
            await self._client.eval(VERIFY.text, 0)
            return await self._client.eval(script.text, 0, *arguments)

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        if self._clock.monotonic() < self._resting_until:
            raise QueueUnavailable(f"Redis at {self._server} did not answer a moment ago.")
        cancellations = _cancellations()
        try:
            yield
        except _TROUBLE as error:
            self._resting_until = self._clock.monotonic() + _REST
            words = masked(str(error)) or type(error).__name__
            raise QueueUnavailable(f"Redis at {self._server} is away: {words}") from error
        if _cancellations() > cancellations:
            # The driver's wait_for, before Python 3.12, loses a cancellation that comes as it ends.
            raise asyncio.CancelledError


def _cancellations() -> int:
    """How often the present task was asked to end."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _pool(url: str, timeout: float) -> BlockingConnectionPool:
    try:
        return BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=timeout,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise InvalidSettings(
            "redis.url is not an address such as redis://user:password@host:6379/0.",
            field="redis.url",
        ) from error
