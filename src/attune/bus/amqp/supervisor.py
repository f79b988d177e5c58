"""Keeps one bus connected: builds a session, waits until it is lost, backs off, builds the next.

There is one way to be connected and it always starts from nothing, so a reconnect after any kind of break
is no other path than the first connect.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog
from yarl import URL

from attune.bus.amqp.errors import check_cancelled, explain, shown
from attune.bus.amqp.session import Session
from attune.bus.port import QueueMismatch
from attune.kernel.clock import Clock
from attune.kernel.errors import AttuneError

_log = structlog.get_logger()

Build = Callable[[Session], Awaitable[None]]
Trouble = Callable[[AttuneError], None]

_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0


def reconnect_delay(failures: int, jitter: random.Random) -> float:
    """Seconds before the next attempt: 0.1 growing to 5, less up to a half so that clients spread."""
    delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** min(failures, 16))
    return delay * (1 - jitter.random() / 2)


class Supervisor:
    def __init__(
        self,
        url: URL,
        name: str,
        *,
        build: Build,
        on_trouble: Trouble,
        clock: Clock,
        jitter: random.Random,
        connect_timeout: float,
    ) -> None:
        self._url = url
        self._name = name
        self._build = build
        self._on_trouble = on_trouble
        self._clock = clock
        self._jitter = jitter
        self._connect_timeout = connect_timeout
        self._sessions = 0
        self._failures = 0

    async def run(self) -> None:
        """Until cancelled. A mismatch needs a person, but is tried again all the same: the person may act."""
        while True:
            try:
                await self._live()
            # The edge of the loop: a supervisor that ended would leave a bus that never comes back.
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
                check_cancelled(error)
                self._report(explain(error, self._url))
            await self._clock.sleep(reconnect_delay(self._failures, self._jitter))
            self._failures += 1

    async def _live(self) -> None:
        session = await self._connect()
        since = self._clock.monotonic()
        try:
            _log.info("Connected to the message broker.", broker=shown(self._url))
            cause = await session.lost
            self._report(explain(cause, self._url))
        finally:
            await session.close()
            # A connection that breaks again at once is no sign of health.
            if self._clock.monotonic() - since > _LONGEST_DELAY:
                self._failures = 0

    async def _connect(self) -> Session:
        self._sessions += 1
        async with asyncio.timeout(self._connect_timeout):
            session = await Session.open(self._url, self._name, self._sessions)
            try:
                await self._build(session)
            except BaseException:
                await session.close()
                raise
        return session

    def _report(self, error: AttuneError) -> None:
        level = _log.error if isinstance(error, QueueMismatch) else _log.warning
        level(
            "The message broker is not connected.", error=error.message, attempt=self._failures + 1
        )
        self._on_trouble(error)
