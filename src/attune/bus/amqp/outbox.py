"""What is published and not yet confirmed.

Every message stays here until the broker confirms it, so a new connection sends again whatever the old one
left open, in the old order. What is posted while the connection takes it is written in that moment; the rest is left to
the pump, which all publishers share.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from attune.bus.amqp.channel import LeanChannel
from attune.bus.amqp.confirms import Batch, Confirms
from attune.bus.amqp.frames import Outgoing
from attune.kernel.clock import Clock
from attune.kernel.errors import BusUnavailable

# Messages in one write: enough to fill packets, few enough that the first leaves soon.
_WRITE_AT_MOST = 128


class _Line:
    """A channel as long as it takes what is written at once."""

    def __init__(self, channel: LeanChannel, confirms: Confirms) -> None:
        self._channel = channel
        self._confirms = confirms
        self._frame_max = channel.connection.connection_tune.frame_max or 131072

    def write(self, unsent: deque[Batch]) -> bool:
        """Whether all of it went, and there is room for more."""
        if self._channel.takes_more and (frames := self._next(unsent)):
            self._channel.write(b"".join(frames))
        return not unsent and self._channel.takes_more

    def _next(self, unsent: deque[Batch]) -> list[bytes]:
        frames: list[bytes] = []
        while unsent and len(frames) < _WRITE_AT_MOST:
            batch = unsent[0]
            if batch.all_sent or batch.done.done():
                unsent.popleft()
                continue
            frames.append(batch.send_one().frames(self._channel.number, self._frame_max))
            self._confirms.expect(batch)
        while unsent and unsent[0].all_sent:
            unsent.popleft()
        return frames


class Outbox:
    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._open: deque[Batch] = deque()
        self._unsent: deque[Batch] = deque()
        self._filled = asyncio.Event()
        self._line: _Line | None = None
        self._watch: asyncio.Task[None] | None = None
        self._closed: str | None = None
        self.trouble = "it is not connected yet"

    def post(self, messages: Sequence[Outgoing]) -> "asyncio.Future[None]":
        """Done when all are confirmed, on whichever connection that happens."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._closed is not None:
            done.set_exception(BusUnavailable(self._closed))
        elif messages:
            self._add(Batch(messages, self._clock.monotonic() + self._timeout, done))
        else:
            done.set_result(None)
        return done

    async def send(self, messages: Sequence[Outgoing]) -> None:
        await self.post(messages)

    def _add(self, batch: Batch) -> None:
        self._open.append(batch)
        self._unsent.append(batch)
        batch.done.add_done_callback(self._forget_done)
        if self._line is None or not self._line.write(self._unsent):
            self._line = None
            self._filled.set()
        if self._watch is None:
            self._watch = asyncio.create_task(self._expire())

    async def pump(self, channel: LeanChannel, confirms: Confirms) -> None:
        """Write to one channel until it is gone; runs anew for each connection."""
        line = _Line(channel, confirms)
        self._unsent = deque(batch for batch in self._open if not batch.done.done())
        for batch in self._unsent:
            batch.restart()
        try:
            while True:
                self._filled.clear()
                await channel.drain()
                while not line.write(self._unsent):
                    await channel.drain()
                self._line = line
                await self._filled.wait()
        finally:
            self._line = None

    def close(self, reason: str) -> None:
        self._closed = reason
        for batch in self._open:
            batch.fail(BusUnavailable(reason))
        self._open.clear()
        if self._watch is not None:
            self._watch.cancel()

    def _forget_done(self, _done: object = None) -> None:
        while self._open and self._open[0].done.done():
            self._open.popleft()

    async def _expire(self) -> None:
        """Fail what is open for too long. All have the same time, so the oldest is always first."""
        while self._open:
            oldest = self._open[0]
            remaining = oldest.deadline - self._clock.monotonic()
            if remaining > 0:
                await self._clock.sleep(remaining)
            else:
                oldest.fail(BusUnavailable(self._complaint(oldest)))
            self._forget_done()
        self._watch = None

    def _complaint(self, batch: Batch) -> str:
        return (
            f"The broker did not confirm {batch.unconfirmed} of {len(batch.messages)} messages"
            f" within {self._timeout:g} seconds: {self.trouble}"
        )
