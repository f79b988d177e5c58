"""What an announcer does with what is left to say when its process stops."""

import asyncio

from attune.bus.announcer import Announcer
from attune.bus.port import Post
from attune.kernel.clock import SystemClock
from tests.contract.bus.messages import enforcement


class SilentBus:
    """Takes messages and never confirms them, as a broker that is away."""

    def __init__(self) -> None:
        self.given_up = 0

    async def post(self, *posts: Post) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up += len(posts)


async def test_it_gives_up_what_a_broker_that_is_away_does_not_take() -> None:
    """Also what came while many were on their way, which would have its own time-out to wait for."""
    bus = SilentBus()
    announcer = Announcer(bus, SystemClock())  # type: ignore[arg-type]  # publishing is all that is asked of it
    for number in range(1, 6):
        announcer.announce(enforcement(number))
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await announcer.stop()
    assert bus.given_up == 4
