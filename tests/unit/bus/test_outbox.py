"""What is published and not yet confirmed: written in the moment if the connection takes it, and again after a break."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from attune.bus.amqp.confirms import Confirms
from attune.bus.amqp.frames import Outgoing
from attune.bus.amqp.outbox import Outbox
from attune.kernel.errors import BusUnavailable
from attune.simulation.clock import ManualClock


class Line:
    """A channel whose socket takes nothing while it is `stuck`."""

    number = 1
    connection: Any = SimpleNamespace(connection_tune=SimpleNamespace(frame_max=0))

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.takes_more = True
        self.empty = asyncio.Event()
        self.empty.set()

    def write(self, frames: bytes) -> None:
        self.written.append(frames)

    async def drain(self) -> None:
        await self.empty.wait()

    def stuck(self) -> None:
        self.takes_more = False
        self.empty.clear()

    def free(self) -> None:
        self.takes_more = True
        self.empty.set()

    def has(self, word: bytes) -> int:
        return sum(frames.count(word) for frames in self.written)


@asynccontextmanager
async def pumping(outbox: Outbox, line: Line, confirms: Confirms) -> AsyncIterator[None]:
    pump = asyncio.create_task(outbox.pump(line, confirms))  # type: ignore[arg-type]
    await turns()
    try:
        yield
    finally:
        pump.cancel()
        with suppress(asyncio.CancelledError):
            await pump


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def message(word: bytes) -> Outgoing:
    return Outgoing(b"method", b"header", word)


@pytest.fixture
def outbox() -> Outbox:
    return Outbox(ManualClock(), 30)


async def test_what_is_posted_is_written_before_the_call_returns(outbox: Outbox) -> None:
    line, confirms = Line(), Confirms()
    async with pumping(outbox, line, confirms):
        done = outbox.post([message(b"one"), message(b"two")])
        assert (line.has(b"one"), line.has(b"two")) == (1, 1)
        assert not done.done()
        confirms.settle(2, True, True)
        assert done.done()


async def test_what_a_full_socket_does_not_take_waits_its_turn(outbox: Outbox) -> None:
    line, confirms = Line(), Confirms()
    async with pumping(outbox, line, confirms):
        line.stuck()
        outbox.post([message(b"one")])
        outbox.post([message(b"two")])
        await turns()
        assert (line.has(b"one"), line.has(b"two")) == (0, 0)
        line.free()
        await turns()
        assert (line.has(b"one"), line.has(b"two")) == (1, 1)
        outbox.post([message(b"three")])
        assert line.has(b"three") == 1


async def test_many_messages_are_written_in_several_pieces_and_in_their_order(
    outbox: Outbox,
) -> None:
    line, confirms = Line(), Confirms()
    async with pumping(outbox, line, confirms):
        outbox.post([message(f"<{number}>".encode()) for number in range(300)])
        await turns()
        text = b"".join(line.written)
        places = [text.index(f"<{number}>".encode()) for number in range(300)]
        assert places == sorted(places)
        assert len(line.written) > 1


async def test_what_was_not_confirmed_goes_again_on_the_next_connection(outbox: Outbox) -> None:
    first, second = Line(), Line()
    async with pumping(outbox, first, Confirms()):
        done = outbox.post([message(b"one")])
    waiting = outbox.post([message(b"two")])
    assert first.has(b"two") == 0
    confirms = Confirms()
    async with pumping(outbox, second, confirms):
        assert (second.has(b"one"), second.has(b"two")) == (1, 1)
        confirms.settle(2, True, True)
        assert done.done()
        assert waiting.done()


async def test_a_closed_one_takes_nothing(outbox: Outbox) -> None:
    outbox.close("The bus is closed.")
    with pytest.raises(BusUnavailable, match="closed"):
        await outbox.post([message(b"one")])
