"""The one shape of a background duty: a frozen config, `run_once`, and a loop around it.

A duty finds its work in the database and is safe to run twice, so any number of processes may have it.
`hurry` makes it look now; without that it looks at every interval, which is what a lost message costs.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

import msgspec
import structlog

from attune.kernel.clock import Clock
from attune.kernel.errors import AttuneError

_log = structlog.get_logger()


class DutyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`interval` is in seconds."""

    interval: float

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise ValueError("the interval of a duty must be above 0 seconds")


C = TypeVar("C", bound=DutyConfig)


class Duty(ABC, Generic[C]):
    name: ClassVar[str]

    def __init__(self, config: C, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self._hurried = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def run_once(self) -> None:
        """Do what is due now. An error ends this pass only."""

    def until_next(self) -> float:
        """How many seconds to rest after a pass, unless somebody hurries."""
        return self.config.interval

    async def run(self) -> None:
        """Pass after pass until `stop`; the pass under way is always finished."""
        while not self._stopping:
            self._hurried.clear()
            await self._pass()
            await self._rest()

    def hurry(self) -> None:
        """Look now, or once more after the pass under way."""
        self._hurried.set()

    async def start(self) -> asyncio.Task[None]:
        self._stopping = False
        self._task = asyncio.create_task(self.run(), name=self.name)
        return self._task

    async def stop(self) -> None:
        task, self._task = self._task, None
        self._stopping = True
        self._hurried.set()
        if task is not None:
            await task

    async def _pass(self) -> None:
        try:
            await self.run_once()
        except AttuneError as error:
            _log.warning("A duty's pass failed.", duty=self.name, code=error.code, error=str(error))
        except Exception:  # noqa: BLE001 - the edge of the loop: a dead duty is missed too late
            _log.exception("A duty's pass failed unexpectedly.", duty=self.name)

    async def _rest(self) -> None:
        """Until the interval is over or somebody hurries."""
        if self._hurried.is_set():
            return
        waits = [
            asyncio.create_task(self._hurried.wait()),
            asyncio.create_task(self.clock.sleep(self.until_next())),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
