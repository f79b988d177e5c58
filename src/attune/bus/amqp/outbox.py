"""What is published and not yet confirmed.

Every message stays here until the broker confirms it, so a new connection sends again whatever the old one
left open, in the old order. All publishers share one writer: what they publish while it writes goes
out together next.
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


class Outbox:
    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._open: deque[Batch] = deque()
        self._unsent: deque[Batch] = deque()
        self._filled = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._closed: str | None = None
        self.trouble = "it is not connected yet"

    async def send(self, messages: Sequence[Outgoing]) -> None:
        """Return when all are confirmed, on whichever connection that happens."""
        if not messages:
            return
        if self._closed is not None:
            raise BusUnavailable(self._closed)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        batch = Batch(messages, self._clock.monotonic() + self._timeout, done)
        self._open.append(batch)
        self._unsent.append(batch)
        self._filled.set()
        if self._watch is None:
            self._watch = asyncio.create_task(self._expire())
        try:
            await done
        finally:
            self._forget_done()

    async def pump(self, channel: LeanChannel, confirms: Confirms) -> None:
        """Write to one channel until it is gone; runs anew for each connection."""
        frame_max = channel.connection.connection_tune.frame_max or 131072
        self._unsent = deque(batch for batch in self._open if not batch.done.done())
        for batch in self._unsent:
            batch.restart()
        while True:
            self._filled.clear()
            while self._unsent:
                await channel.transmit(self._next_write(channel.number, frame_max, confirms))
            await self._filled.wait()

    def close(self, reason: str) -> None:
        self._closed = reason
        for batch in self._open:
            batch.fail(BusUnavailable(reason))
        self._open.clear()
        if self._watch is not None:
            self._watch.cancel()

    def _next_write(self, channel: int, frame_max: int, confirms: Confirms) -> bytes:
        frames: list[bytes] = []
        while self._unsent and len(frames) < _WRITE_AT_MOST:
            batch = self._unsent[0]
            if batch.all_sent or batch.done.done():
                self._unsent.popleft()
                continue
            frames.append(batch.send_one().frames(channel, frame_max))
            confirms.expect(batch)
        return b"".join(frames)

    def _forget_done(self) -> None:
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
