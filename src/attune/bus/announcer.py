"""Announces what was committed, without making anybody wait for the broker.

A step hands its messages to `tx.on_commit`; nothing is announced that was not committed. Where the broker
is away they are dropped after the publish time-out, because a message only hurries: the work is in the
database, and the next pass of its reader finds it.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

import structlog

from attune.bus.port import Bus, Post
from attune.kernel.clock import Clock
from attune.kernel.envelope import Envelope, Stamp
from attune.kernel.errors import BusUnavailable, InvalidInput
from attune.kernel.messages import MessageType, Payload

_WAITING_AT_MOST: Final = 10_000
_IN_FLIGHT: Final = 4  # lots of messages that the broker has not confirmed
COMPANY: Final = 0.025  # seconds that news wait for others, if somebody may want to see them
LEISURE: Final = 0.25  # seconds for news that nobody looks at
_LAST_WORDS: Final = 2.0  # seconds for what is left to say when the process stops

_Kind = tuple[Stamp, MessageType]

_log = structlog.get_logger()


class Announcer:
    """What comes while few messages are on their way leaves at once; what comes while many are leaves together next."""

    name = "announcer"

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._waiting: deque[Post] = deque(maxlen=_WAITING_AT_MOST)
        self._sending: set[asyncio.Task[None]] = set()
        self._news: dict[float, dict[_Kind, list[Payload]]] = defaultdict(dict)
        self._gathering: dict[float, asyncio.Task[None]] = {}

    def announce(self, *envelopes: Envelope, to: str | None = None) -> None:
        """Publish soon; `to` names one queue instead of the routes."""
        self._waiting.extend((to, envelope) for envelope in envelopes)
        self._flush()

    def tell(self, stamp: Stamp, kind: MessageType, items: Sequence[Payload]) -> None:
        """The same for news that somebody may wait for. Those of their kind that wait go before them, in one message."""
        waiting = [each for group in self._news.values() for each in group.pop((stamp, kind), ())]
        self.announce(*stamp.envelopes(kind, [*waiting, *items]))

    def mention(
        self, stamp: Stamp, kind: MessageType, items: Sequence[Payload], within: float = COMPANY
    ) -> None:
        """News that nobody waits for: so many seconds later, so that many leave as few messages."""
        self._news[within].setdefault((stamp, kind), []).extend(items)
        if within not in self._gathering:
            gathering = asyncio.create_task(self._gather(within), name=self.name)
            self._gathering[within] = gathering

    async def _gather(self, within: float) -> None:
        await self._clock.sleep(within)
        del self._gathering[within]
        self._tell_all(self._news[within])

    def _tell_all(self, news: Mapping[_Kind, Sequence[Payload]]) -> None:
        for stamp, kind in tuple(news):
            self.tell(stamp, kind, ())

    async def start(self) -> None:
        """It starts by itself with the first message."""

    async def stop(self) -> None:
        """Return when everything announced has left, or after a moment: a broker that is away must keep nobody from
        stopping in time, and its readers find the work without these messages."""
        for gathering in self._gathering.values():
            gathering.cancel()
        self._gathering.clear()
        for news in self._news.values():
            self._tell_all(news)
        try:
            async with asyncio.timeout(_LAST_WORDS):
                while self._sending:
                    await asyncio.wait(self._sending)
        except TimeoutError:
            await self._give_up()

    def _flush(self) -> None:
        if self._waiting and len(self._sending) < _IN_FLIGHT:
            posts = tuple(self._waiting)
            self._waiting.clear()
            self._post(posts)

    def _post(self, posts: Sequence[Post]) -> None:
        """Whoever announces has committed, so a message that cannot be sent is our own trouble."""
        try:
            posted = self._bus.post(*posts)
        except InvalidInput as error:
            _log.error("Messages cannot be sent.", count=len(posts), error=str(error))
            return
        sending = asyncio.create_task(self._sent(posted, len(posts)), name=self.name)
        self._sending.add(sending)
        sending.add_done_callback(self._next)

    def _next(self, sending: "asyncio.Task[None]") -> None:
        self._sending.discard(sending)
        self._flush()

    async def _sent(self, posted: Awaitable[None], count: int) -> None:
        try:
            await posted
        except BusUnavailable as error:
            _log.warning(
                "Messages were dropped; their readers find the work at the next pass.",
                count=count,
                error=str(error),
            )

    async def _give_up(self) -> None:
        self._waiting.clear()
        sending = tuple(self._sending)
        for task in sending:
            task.cancel()
        if sending:
            await asyncio.wait(sending)
        _log.warning("Stops without its last messages: the broker does not take them.")
