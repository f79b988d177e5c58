"""Reads every dead-letter queue, so that no message ends where nobody looks."""

import structlog

from attune.bus.dead_letters import DeadLetter
from attune.bus.port import Bus, Subscription
from attune.dead_letters.steps import keep
from attune.kernel.clock import Clock
from attune.store.database import Database

_log = structlog.get_logger()


class DeadLetterKeeper:
    """Any number of executors may keep at once: the broker gives each letter to one of them."""

    name = "dead-letter keeper"

    def __init__(self, bus: Bus, database: Database, clock: Clock) -> None:
        self._bus = bus
        self._database = database
        self._clock = clock
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
            _log.warning(
                "Kept a dead letter.",
                queue=letter.queue,
                reason=letter.reason.value,
                error=letter.error,
                message_id=str(letter.message_id) if letter.message_id else None,
                message_type=letter.message_type,
            )
