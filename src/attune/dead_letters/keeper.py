"""Reads every dead-letter queue, so that no message ends where nobody looks."""

from collections.abc import Awaitable, Callable

import structlog

from attune.bus.dead_letters import DeadLetter
from attune.bus.port import Bus, Subscription
from attune.dead_letters.steps import keep
from attune.kernel.clock import Clock
from attune.store.database import Database

_log = structlog.get_logger()

Then = Callable[[DeadLetter], Awaitable[None]]

_LONGEST_WORD = 500


class DeadLetterKeeper:
    """Any number of executors may keep at once: the broker gives each letter to one of them.

    `then` is told of every letter once it is kept. It must bear to be told again: a letter whose handling it failed
    comes back, and so does one whose acknowledgement was lost.
    """

    name = "dead-letter keeper"

    def __init__(
        self, bus: Bus, database: Database, clock: Clock, then: Then | None = None
    ) -> None:
        self._bus = bus
        self._database = database
        self._clock = clock
        self._then = then
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        self._subscription = await self._bus.consume_dead_letters(self.keep)

    async def stop(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await subscription.cancel()

    async def keep(self, letter: DeadLetter) -> None:
        """Returning is what takes the letter off the broker, so it returns only after the commit."""
        if await self._database.run(keep, letter, self._clock.now()):
            _tell(letter)
        if self._then is not None:
            await self._then(letter)


def _tell(letter: DeadLetter) -> None:
    """The type is a foreign sender's word and may be of any length."""
    _log.warning(
        "Kept a dead letter.",
        queue=letter.queue[:_LONGEST_WORD],
        reason=letter.reason.value,
        error=letter.error,
        message_id=str(letter.message_id) if letter.message_id else None,
        message_type=letter.message_type[:_LONGEST_WORD] if letter.message_type else None,
    )
