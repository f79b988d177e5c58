"""Announces what was committed, without making anybody wait for the broker.

A step hands its messages to `tx.on_commit`; nothing is announced that was not committed. Where the broker
is away they are dropped after the publish time-out, because a message only hurries: the work is in the
database, and the next pass of its reader finds it.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import structlog

from attune.bus.port import Bus
from attune.kernel.clock import Clock
from attune.kernel.envelope import Envelope, Stamp
from attune.kernel.errors import BusUnavailable
from attune.kernel.messages import MessageType, Payload

_WAITING_AT_MOST: Final = 10_000
_COMPANY: Final = 0.025  # seconds that news wait for others
_LAST_WORDS: Final = 2.0  # seconds for what is left to say when the process stops

_log = structlog.get_logger()


class Announcer:
    """The first message leaves at once; those that arrive while it is on its way leave together next."""

    name = "announcer"

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._waiting: deque[tuple[str | None, Envelope]] = deque(maxlen=_WAITING_AT_MOST)
        self._sending: asyncio.Task[None] | None = None
        self._news: dict[tuple[Stamp, MessageType], list[Payload]] = {}
        self._gathering: asyncio.Task[None] | None = None

    def announce(self, *envelopes: Envelope, to: str | None = None) -> None:
        """Publish soon; `to` names one queue instead of the routes."""
        self._take_news()
        self._waiting.extend((to, envelope) for envelope in envelopes)
        if self._sending is None and self._waiting:
            self._sending = asyncio.create_task(self._send(), name=self.name)

    def mention(self, stamp: Stamp, kind: MessageType, items: Sequence[Payload]) -> None:
        """News that nobody acts on waits a moment for others, so that a busy process sends few messages of many items."""
        self._news.setdefault((stamp, kind), []).extend(items)
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._gather(), name=self.name)

    async def _gather(self) -> None:
        await self._clock.sleep(_COMPANY)
        self._gathering = None
        self.announce()

    def _take_news(self) -> None:
        news, self._news = self._news, {}
        for (stamp, kind), items in news.items():
            self._waiting.extend((None, envelope) for envelope in stamp.envelopes(kind, items))

    async def start(self) -> None:
        """It starts by itself with the first message."""

    async def stop(self) -> None:
        """Return when everything announced has left, or after a moment: a broker that is away must keep nobody from
        stopping in time, and its readers find the work without these messages."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        self.announce()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                while self._sending is not None:
                    await asyncio.wait({self._sending})
        except TimeoutError:
            await self._give_up()

    async def _send(self) -> None:
        try:
            while self._waiting:
                waiting = list(self._waiting)
                self._waiting.clear()
                await asyncio.gather(*(self._publish(to, batch) for to, batch in _grouped(waiting)))
        finally:
            self._sending = None

    async def _give_up(self) -> None:
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})
        _log.warning("Stops without its last messages: the broker does not take them.")

    async def _publish(self, to: str | None, batch: list[Envelope]) -> None:
        try:
            await self._bus.publish(*batch, to=to)
        except BusUnavailable as error:
            _log.warning(
                "Messages were dropped; their readers find the work at the next pass.",
                count=len(batch),
                error=str(error),
            )


def _grouped(
    waiting: list[tuple[str | None, Envelope]],
) -> list[tuple[str | None, list[Envelope]]]:
    groups: dict[str | None, list[Envelope]] = {}
    for to, envelope in waiting:
        groups.setdefault(to, []).append(envelope)
    return list(groups.items())
