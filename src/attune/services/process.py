"""The one shape of a process: parts that start in order and stop in reverse, and what signals do to it.

SIGTERM or SIGINT asks for a graceful stop and ends with exit code 0. A second one ends the process now.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import structlog

from attune.services.part import Part

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = structlog.get_logger()


def _exit_now(code: int) -> None:
    sys.stderr.flush()
    os._exit(code)


class Process:
    """`grace` bounds the whole stop, in seconds; what has not finished by then is left behind."""

    def __init__(
        self,
        name: str,
        parts: Sequence[Part],
        *,
        grace: float = 30,
        ready: Callable[[], None] = lambda: None,
        exit_now: Callable[[int], None] = _exit_now,
    ) -> None:
        self._name = name
        self._parts = parts
        self._grace = grace
        self._ready = ready
        self._exit_now = exit_now
        self._started: list[Part] = []
        self._vital: set[asyncio.Task[None]] = set()
        self._asked_to_stop = asyncio.Event()

    async def run(self) -> int:
        """Start, work until told to stop, stop; the exit code. A failure to start is raised after the stop."""
        with self._signals():
            starting = asyncio.create_task(self._start())
            try:
                await self._until_one_ends({starting})
                ended = await self._work(starting)
            finally:
                in_time = await self._stop(starting)
            return 0 if in_time and not ended else 1

    def ask_to_stop(self) -> None:
        self._asked_to_stop.set()

    def _on_signal(self, number: int) -> None:
        word = signal.Signals(number).name
        if self._asked_to_stop.is_set():
            _log.warning("Asked twice to stop, ending now.", process=self._name, signal=word)
            self._exit_now(128 + number)
            return
        _log.info("Asked to stop.", process=self._name, signal=word)
        self.ask_to_stop()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def _start(self) -> None:
        for part in self._parts:
            self._started.append(part)
            task = await part.start()
            if task is not None:
                self._vital.add(task)

    async def _work(self, starting: asyncio.Task[None]) -> bool:
        """Whether work ended because a part did that must live, and not because somebody asked."""
        if not starting.done():
            return False
        starting.result()
        _log.info("Ready.", process=self._name, pid=os.getpid())
        self._ready()
        ended = await self._until_one_ends(self._vital)
        for task in ended:
            error = None if task.cancelled() else task.exception()
            _log.error("A vital part has ended.", part=task.get_name(), error=str(error))
        return bool(ended)

    async def _until_one_ends(self, tasks: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        """Those that ended; none when somebody asked to stop first."""
        asked = asyncio.create_task(self._asked_to_stop.wait())
        done, _ = await asyncio.wait({asked, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        return {task for task in tasks if task in done}

    async def _stop(self, starting: asyncio.Task[None]) -> bool:
        """Whether everything stopped within the grace."""
        starting.cancel()
        await asyncio.wait({starting})
        try:
            async with asyncio.timeout(self._grace):
                while self._started:
                    await self._stop_part(self._started[-1])
                    self._started.pop()
        except TimeoutError:
            stuck = self._started[-1].name
            _log.error("Did not stop in time.", process=self._name, part=stuck, seconds=self._grace)
            return False
        _log.info("Stopped.", process=self._name)
        return True

    async def _stop_part(self, part: Part) -> None:
        try:
            await part.stop()
        except Exception:  # noqa: BLE001 - one part that cannot stop must not keep the others from it
            _log.exception("A part failed to stop.", part=part.name)
