"""What executions do, as it happens, for everyone in this process who wants to know.

The process hears of changes through one queue of its own, and has that queue only while somebody listens. It looks
rows up once for many changes, and only where the news and what it knows do not tell all of them; it writes each event once
for all clients.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import structlog

from attune.api.execution_news import Acquaintances, News, event_of, news_of
from attune.api.listeners import Change, Listener
from attune.bus.port import Bus, Subscription
from attune.bus.routing import EXECUTIONS
from attune.bus.topology import Queue, broadcast_queue
from attune.kernel.batching import Batcher
from attune.kernel.clock import Clock
from attune.kernel.envelope import Envelope
from attune.kernel.errors import BusUnavailable, Unavailable
from attune.kernel.ids import ExecutionId
from attune.kernel.messages import MessageType
from attune.pipeline.executions.model import Execution, ExecutionSummary
from attune.pipeline.executions.queries import summaries
from attune.store.database import Database

_PREFETCH: Final = 200
_FEW: Final = 20  # rows for which nobody is kept waiting
_LINGER: Final = 30.0  # seconds without a listener after which the queue goes: clients come and go

_log = structlog.get_logger()


def feed_queue(process: str, executions: str = EXECUTIONS) -> Queue:
    """`process` must be unique among all that run."""
    return broadcast_queue(
        process,
        MessageType.EXECUTION_REQUESTED,
        MessageType.EXECUTION_NEWS,
        executions=executions,
    )


class ExecutionFeed:
    """A part that starts after the HTTP server and so stops before it: streams end, and the server need not wait."""

    name = "execution feed"

    def __init__(self, database: Database, bus: Bus, clock: Clock, queue: Queue) -> None:
        self._database = database
        self._bus = bus
        self._clock = clock
        self._queue = queue
        self._listeners: dict[ExecutionId | None, set[Listener]] = {}
        self._batches: Batcher[list[News], None] = Batcher(self.name, self._tell)
        self._known = Acquaintances()
        self._turn = asyncio.Lock()
        self._subscription: Subscription | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    async def start(self) -> None:
        """It begins with the first listener."""
        self._stopped = False

    async def stop(self) -> None:
        self._stopped = True
        for listener in [each for some in self._listeners.values() for each in some]:
            listener.end()
        for task in tuple(self._tasks):
            task.cancel()
        await self._unsubscribe()
        await self._batches.stop()

    async def listen(self, only: ExecutionId | None = None) -> Listener:
        """From the return on nothing is missed."""
        listener = self._placed(only)
        try:
            # A client that leaves meanwhile must not leave half a subscription behind.
            await asyncio.shield(self._spawn(self._subscribe(), "execution feed's beginning"))
        except BaseException:
            self.leave(listener)
            raise
        return listener

    def follow(self, only: ExecutionId) -> Listener:
        """Without waiting for the broker: for those who look for themselves and are only hurried."""
        listener = self._placed(only)
        self._spawn(self._subscribe_soon(), "execution feed's beginning")
        return listener

    def leave(self, listener: Listener) -> None:
        """Safe to call twice."""
        listener.close()
        there = self._listeners.get(listener.only, set())
        there.discard(listener)
        if not there:
            self._listeners.pop(listener.only, None)
        if not self._listeners and not self._stopped and self._subscription is not None:
            self._spawn(self._linger(), "execution feed's end")

    def expect(self, executions: Sequence[Execution]) -> None:
        """These were made here, and their news may be on their way. Of many, the rows are looked up just as quickly."""
        if self.is_heard and len(executions) <= _FEW:
            self._known.meet(executions)

    async def handle(self, envelope: Envelope) -> None:
        news = [
            told
            for item in envelope.items
            if (told := news_of(item)) is not None and self._is_wanted(told.execution)
        ]
        if self._batches.is_idle and all(map(self._known.suffice, news)):
            self._show(news, {})
        elif news:
            await self._batches.submit(news)

    def _placed(self, only: ExecutionId | None) -> Listener:
        if self._stopped:
            raise Unavailable("This server is stopping.")
        listener = Listener(self._clock, only)
        self._listeners.setdefault(only, set()).add(listener)
        return listener

    def _is_wanted(self, execution: ExecutionId) -> bool:
        return None in self._listeners or execution in self._listeners

    async def _tell(self, batches: list[list[News]]) -> Sequence[Exception | None]:
        news = [each for batch in batches for each in batch]
        self._show(news, await self._looked_up(news))
        return [None] * len(batches)

    def _show(self, news: Sequence[News], rows: Mapping[ExecutionId, ExecutionSummary]) -> None:
        """In their order; `rows` has those whose news and what is known of them do not tell all."""
        for each in news:
            row = self._known.row(each) or rows.get(each.execution)
            if row is not None:
                self._put(each.execution, Change(row, event_of(row, each)))
        self._known.part(news)

    async def _looked_up(self, news: Sequence[News]) -> Mapping[ExecutionId, ExecutionSummary]:
        ids = {each.execution for each in news if not self._known.suffice(each)}
        if not ids:
            return {}
        look = self._database.glance if len(ids) <= _FEW else self._database.read
        rows = await look(summaries, ids)
        self._known.meet(rows.values())
        return rows

    def _put(self, execution: ExecutionId, change: Change) -> None:
        for key in (None, execution):
            for listener in self._listeners.get(key, ()):
                listener.put(change)

    async def _subscribe(self) -> None:
        async with self._turn:
            if self._subscription is None and not self._stopped:
                await self._bus.declare(self._queue)
                self._subscription = await self._bus.consume(
                    self._queue.name, self.handle, prefetch=_PREFETCH
                )

    async def _subscribe_soon(self) -> None:
        try:
            await self._subscribe()
        except BusUnavailable as error:
            _log.warning("The execution feed has no broker.", error=str(error))

    async def _unsubscribe(self) -> None:
        async with self._turn:
            if self._subscription is None or (self._listeners and not self._stopped):
                return
            subscription, self._subscription = self._subscription, None
            try:
                await subscription.cancel()
                await self._bus.delete(self._queue.name)
            except BusUnavailable as error:
                _log.info("The execution feed's queue goes with the connection.", error=str(error))

    async def _linger(self) -> None:
        await self._clock.sleep(_LINGER)
        await self._unsubscribe()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
