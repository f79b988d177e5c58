"""A worker's heartbeat, from a thread with an event loop and a connection of its own.

So neither a busy action nor a busy loop looks like a dead worker. But a worker whose own loop has stood still for as
long as the silence that means loss must not look alive: then its heart is silent, too, and says so in the log.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from attune.kernel.clock import Clock
from attune.pipeline.workers.beats import NameTaken, beat, sign_off
from attune.pipeline.workers.model import Worker
from attune.worker.heart_line import Line
from attune.worker.loop_watch import LoopWatch, call_in

_LAST_WORDS: Final = 1.5  # seconds for what is said at the very end, while the database may be away
_SOON: Final = 1 / 20  # of the interval, until a beat that failed is tried again; doubled up to
_LATER: Final = 1 / 4

_log = structlog.get_logger()


def _nobody() -> None:
    """Until the worker listens."""


class Heartbeat:
    """`stale` is the silence, in seconds, after which a worker counts as lost.

    `on_back` is called in the worker's loop when it had been given up for lost meanwhile: its rows must be looked at.
    """

    name = "worker's heartbeat"

    def __init__(
        self, worker: Worker, line: Line, clock: Clock, *, interval: float, stale: float
    ) -> None:
        self.on_back: Callable[[], None] = _nobody
        self._worker = worker
        self._line = line
        self._clock = clock
        self._interval = interval
        self._stale = stale
        self._beaten = clock.monotonic()
        self._leaving = self._left = self._stopping = False
        self._turns = True
        self._failures = 0
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def age(self) -> float:
        """Seconds since the last beat that was written."""
        return self._clock.monotonic() - self._beaten

    @property
    def is_stale(self) -> bool:
        return self.age >= self._stale

    @property
    def is_replaced(self) -> bool:
        """Whether another process has this worker's name, and with it all that its rows hold."""
        return isinstance(self._error, NameTaken)

    async def start(self) -> asyncio.Task[None]:
        """The task ends with the thread; with `NameTaken` when the worker was replaced and must stop."""
        self._home = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._home.create_future()
        self._loop = asyncio.new_event_loop()
        self._hurry, self._one_at_a_time = asyncio.Event(), asyncio.Lock()
        self._watch = LoopWatch(self._home, self._clock, self._stale)
        self._beaten = self._clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="attune-heartbeat", daemon=True)
        self._thread.start()
        return asyncio.create_task(self._living(), name=self.name)

    @property
    def has_left(self) -> bool:
        """Whether it is written that the worker is inactive, on its own wish."""
        return self._left

    async def leave(self, patience: float) -> None:
        """Beat on, but count as inactive. What is not written within so many seconds, the next beat tells."""
        self._leaving = True
        if self._thread is not None:
            await self._in_thread(self._beat(), patience)

    async def stop(self, text: str | None = None) -> None:
        """Sign off, if the database is there to hear it, and end the thread. `text` tells what is left undone."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        await self._in_thread(self._sign_off(text), _LAST_WORDS)
        self._stopping = True
        call_in(self._loop, self._hurry.set)
        await asyncio.wait({self._over}, timeout=_LAST_WORDS)

    async def _living(self) -> None:
        await asyncio.shield(self._over)
        if self._error is not None:
            raise self._error

    async def _in_thread(self, work: Coroutine[Any, Any, object], patience: float) -> None:
        """Have it done by the thread, within a bound; there, whatever it comes to is logged."""
        try:
            asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the thread has ended
            work.close()
            return
        done = asyncio.wrap_future(asked)
        done.add_done_callback(lambda each: each.cancelled() or each.exception())
        waits: set[asyncio.Future[Any]] = {done, self._over}
        await asyncio.wait(waits, timeout=patience, return_when=asyncio.FIRST_COMPLETED)

    def _run(self) -> None:
        """The thread."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._live())
        except BaseException as error:  # noqa: BLE001 - the worker's loop raises it, and the process ends
            self._error = error
        call_in(self._home, lambda: self._over.set_result(None))

    async def _live(self) -> None:
        """Until told to stop, or until the worker's loop is gone without a word."""
        try:
            while not (self._stopping or self._home.is_closed()):
                self._hurry.clear()
                await self._rest(await self._beat())
        finally:
            await self._line.close()

    async def _rest(self, seconds: float) -> None:
        waits = [
            asyncio.create_task(self._hurry.wait()),
            asyncio.create_task(self._clock.sleep(seconds)),
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _beat(self) -> float:
        """Beat once, if that is the truth; after how many seconds the next one is due."""
        async with self._one_at_a_time:
            began = self._clock.monotonic()
            if not await self._home_turns():
                return self._interval
            try:
                await self._write(began)
            except NameTaken as error:
                self._error = error
                raise
            except Exception as error:  # noqa: BLE001 - the edge of the loop: a heart that stops is a lost worker
                return self._missed(error)
            self._failures = 0
            return max(began + self._interval - self._clock.monotonic(), 0)

    async def _write(self, began: float) -> None:
        worker, leaving = self._worker, self._leaving
        silence = await self._line.run(
            beat, worker.id, worker.incarnation, self._clock.now(), leaving=leaving
        )
        self._beaten, self._left = began, leaving
        if silence is not None:
            seconds = round(silence.total_seconds(), 3)
            _log.warning("The worker had been given up for lost.", silent_for_seconds=seconds)
            call_in(self._home, self.on_back)

    def _missed(self, error: Exception) -> float:
        delay = self._interval * min(_SOON * 2.0**self._failures, _LATER)
        self._failures = min(self._failures + 1, 10)
        _log.warning(
            "A heartbeat was missed.", error=str(error), age_seconds=round(self.age, 3), again=delay
        )
        return delay

    async def _sign_off(self, text: str | None) -> None:
        worker = self._worker
        async with self._one_at_a_time:
            try:
                now = self._clock.now()
                await self._line.run(sign_off, worker.id, worker.incarnation, text, now)
            except Exception as error:  # noqa: BLE001 - the worker stops in any case
                _log.warning("The worker could not sign off.", error=str(error))

    async def _home_turns(self) -> bool:
        """Whether the worker's loop has turned lately. After a pause of the whole process it gets a moment for it."""
        self._watch.ask()
        if self._watch.stands_still:
            await self._clock.sleep(self._interval * _SOON)
        turns = not self._watch.stands_still
        if self._turns and not turns:
            _log.warning("The worker's loop stands still, and so does its heart.", age=self.age)
        elif turns and not self._turns:
            _log.warning("The worker's loop turns again.", age=self.age)
        self._turns = turns
        return turns
