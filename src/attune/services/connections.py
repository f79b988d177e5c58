"""The parts that connect a process to its servers. A server that is still starting is waited for."""

import importlib
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from attune.bus.port import Bus
from attune.kernel.clock import Clock
from attune.kernel.errors import Unavailable
from attune.services.schema_check import has_this_schema
from attune.store.database import Database

_FIRST_DELAY: Final = 0.2
_LONGEST_DELAY: Final = 5.0

_log = structlog.get_logger()


class DatabasePart:
    """Refuses a database whose schema is another version's; an embedded one is upgraded by its owner."""

    name = "database"

    def __init__(self, database: Database, url: str, clock: Clock, *, upgrade: bool) -> None:
        self._database = database
        self._url = url
        self._clock = clock
        self._upgrade = upgrade

    async def start(self) -> None:
        await _until_available(self._open, self.name, self._clock)

    async def stop(self) -> None:
        await self._database.close()

    async def _open(self) -> None:
        """What makes a schema takes longer to load than a small process: it is asked where one is wanting."""
        await self._database.open()
        if await has_this_schema(self._database):
            return
        migrate = importlib.import_module("attune.store.migrate")
        await (migrate.upgrade if self._upgrade else migrate.check)(self._url)


class BusPart:
    name = "message broker"

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    async def start(self) -> None:
        await _until_available(self._bus.start, self.name, self._clock)

    async def stop(self) -> None:
        await self._bus.close()


async def _until_available(
    connect: Callable[[], Awaitable[None]], server: str, clock: Clock
) -> None:
    delay = _FIRST_DELAY
    while True:
        try:
            return await connect()
        except Unavailable as error:
            _log.warning("A server is away, trying again.", server=server, error=str(error))
        await clock.sleep(delay)
        delay = min(delay * 2, _LONGEST_DELAY)
