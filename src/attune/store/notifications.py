"""Hears the wakes of all processes on PostgreSQL, and hears them again after the connection was lost."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog

from attune.kernel.clock import Clock
from attune.store.postgresql_errors import DRIVER_ERRORS
from attune.store.postgresql_session import Call, Session

CHANNEL: Final = "attune_wake"

_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 5.0
_CHECK_SECONDS: Final = 15.0

_log = structlog.get_logger()


class NotificationListener:
    """Keeps one connection of its own. Each new connection starts with a wake for everything, since
    what was sent while nobody listened is gone."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Session]],
        deliver: Callable[[Iterable[tuple[str, str]]], None],
        topics: Callable[[], Iterable[str]],
        clock: Clock,
    ) -> None:
        self._connect = connect
        self._deliver = deliver
        self._topics = topics
        self._clock = clock
        self._listening = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return once wakes are heard, or once it is clear that the database is away again."""
        self._task = asyncio.create_task(self._keep_listening(), name="attune-notifications")
        await self._listening.wait()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _keep_listening(self) -> None:
        delay = _FIRST_DELAY
        while True:
            try:
                connection = await self._connect()
                delay = _FIRST_DELAY
                await self._listen(connection)
            except DRIVER_ERRORS as error:
                self._listening.set()
                reason = str(error) or type(error).__name__
                _log.warning("Lost the connection that hears wakes.", error=reason)
            await self._clock.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY)

    async def _listen(self, session: Session) -> None:
        session.on_notification = self._hear
        try:
            await session.ask(Call(f"LISTEN {CHANNEL}"))
            self._listening.set()
            self._deliver([(topic, "") for topic in self._topics()])
            while not session.closed.is_set():
                await self._wait_or_check(session)
        finally:
            session.close()

    async def _wait_or_check(self, session: Session) -> None:
        """A connection that was cut without a word is found out by asking."""
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await session.closed.wait()
        except TimeoutError:
            await session.ask(Call("SELECT 1"))

    def _hear(self, payload: str) -> None:
        topic, _, key = payload.partition("\n")
        self._deliver([(topic, key)])
