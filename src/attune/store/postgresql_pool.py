"""Sessions that steps take turns with."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from attune.kernel.clock import Clock
from attune.store.postgresql_session import Session

_IDLE_SECONDS: Final = 300.0


class SessionPool:
    """Who comes first is served first. The session used last is taken next, and one that nobody needed for long goes."""

    def __init__(
        self, connect: Callable[[], Awaitable[Session]], size: int, timeout: float, clock: Clock
    ) -> None:
        self._connect = connect
        self._size = size
        self._timeout = timeout
        self._clock = clock
        self._places = asyncio.Semaphore(size)
        self._idle: deque[tuple[Session, float]] = deque()
        self._is_closed = False

    async def take(self) -> Session:
        """Raise TimeoutError where none is free, or can be made, in time."""
        if self._idle and not self._places.locked():
            await self._places.acquire()
        else:
            async with asyncio.timeout(self._timeout):
                await self._places.acquire()
        try:
            return self._idle_one() or await self._connect()
        except BaseException:
            self._places.release()
            raise

    def give_back(self, session: Session) -> None:
        now = self._clock.monotonic()
        if session.is_reusable and not self._is_closed:
            self._idle.append((session, now))
        else:
            session.close()
        while self._idle and now - self._idle[0][1] > _IDLE_SECONDS:
            self._idle.popleft()[0].close()
        self._places.release()

    async def close(self) -> None:
        """Return when every session is back."""
        self._is_closed = True
        for _ in range(self._size):
            await self._places.acquire()
        while self._idle:
            self._idle.pop()[0].close()

    def _idle_one(self) -> Session | None:
        while self._idle:
            session, _ = self._idle.pop()
            if session.is_reusable:
                return session
            session.close()
        return None
