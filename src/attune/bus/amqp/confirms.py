"""Which publishes the broker has confirmed, counted and not waited for one by one."""

import asyncio
from collections.abc import Sequence

from attune.bus.amqp.frames import Outgoing
from attune.kernel.errors import BusUnavailable


class Batch:
    """The messages of one publish call. It is done when the last of them is confirmed."""

    __slots__ = ("_sent", "deadline", "done", "messages", "unconfirmed")

    def __init__(
        self, messages: Sequence[Outgoing], deadline: float, done: asyncio.Future[None]
    ) -> None:
        self.messages = messages
        self.deadline = deadline
        self.done = done
        self.restart()

    def restart(self) -> None:
        """Nothing of it counts as sent: what a lost connection confirmed in part goes again in whole."""
        self._sent = 0
        self.unconfirmed = len(self.messages)

    @property
    def all_sent(self) -> bool:
        return self._sent == len(self.messages)

    def send_one(self) -> Outgoing:
        self._sent += 1
        return self.messages[self._sent - 1]

    def confirm_one(self) -> None:
        self.unconfirmed -= 1
        if self.unconfirmed == 0 and not self.done.done():
            self.done.set_result(None)

    def fail(self, error: BusUnavailable) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Confirms:
    """The publishes of one channel: the broker numbers them from 1, and so do we."""

    def __init__(self) -> None:
        self._batches: dict[int, Batch] = {}
        self._last = 0
        self._oldest = 1

    def expect(self, batch: Batch) -> None:
        self._last += 1
        self._batches[self._last] = batch

    def retire(self) -> None:
        """The channel is gone; a late frame of it must not count for the next one."""
        self._batches.clear()

    def settle(self, tag: int, multiple: bool, confirmed: bool) -> None:
        if not multiple:
            self._settle_one(tag, confirmed)
            return
        for each in range(self._oldest, tag + 1):
            self._settle_one(each, confirmed)
        self._oldest = tag + 1

    def _settle_one(self, tag: int, confirmed: bool) -> None:
        batch = self._batches.pop(tag, None)
        if batch is None:
            return
        if confirmed:
            batch.confirm_one()
        else:
            batch.fail(BusUnavailable("The broker refused to take charge of a message."))
