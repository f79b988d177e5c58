"""What an announcer does with what is left to say when its process stops."""

import asyncio

from attune.bus.announcer import Announcer
from attune.kernel.clock import SystemClock
from attune.kernel.envelope import Envelope
from tests.contract.bus.messages import enforcement


class SilentBus:
    """Takes messages and never confirms them, as a broker that is away."""

    def __init__(self) -> None:
        self.given_up = 0

    async def publish(self, *envelopes: Envelope, to: str | None = None) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up += len(envelopes)


async def test_it_gives_up_what_a_broker_that_is_away_does_not_take() -> None:
    """Also what came while the first message was on its way, which would have its own time-out to wait for."""
    bus = SilentBus()
    announcer = Announcer(bus, SystemClock())  # type: ignore[arg-type]  # publishing is all that is asked of it
    announcer.announce(enforcement(1))
    await asyncio.sleep(0)
    announcer.announce(enforcement(2))
    async with asyncio.timeout(10):
        await announcer.stop()
    assert bus.given_up == 1
