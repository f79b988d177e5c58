"""What is said on the link to an interpreter arrives, and so does its end."""

import asyncio

import pytest

from attune.worker.warm.wire import Wire, pair

BOUND = 10.0


class Listener:
    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.ended = asyncio.Event()

    async def end(self) -> None:
        async with asyncio.timeout(BOUND):
            await self.ended.wait()


@pytest.mark.parametrize("words", [0, 1, 200])
@pytest.mark.parametrize("unread", [False, True])
async def test_all_that_was_said_before_the_end_is_heard(words: int, unread: bool) -> None:
    ours, theirs = pair()
    listener = Listener()
    wire = Wire(ours, listener.heard.append, listener.ended.set)
    said = [b"%d" % number for number in range(words)]
    with theirs:
        for word in said:
            theirs.send(word)
        if unread:
            wire.send(b"never taken")
    await listener.end()
    assert listener.heard == said
    assert wire.unread is unread
    assert not wire.is_open


async def test_what_is_sent_after_the_other_end_is_gone_is_unread_and_the_rest_is_heard() -> None:
    ours, theirs = pair()
    listener = Listener()
    wire = Wire(ours, listener.heard.append, listener.ended.set)
    with theirs:
        theirs.send(b"first")
        theirs.send(b"last")
        wire.send(b"never taken")
    wire.send(b"too late")
    await listener.end()
    assert listener.heard == [b"first", b"last"]
    assert wire.unread
