"""Reads one queue, and turns what its messages name into one piece of work for many messages.

A message hurries; the rows say whether there is anything to do. So a message that comes twice, or late, costs a
look. One that names a row that does not exist is refused, and ends as a dead letter.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from attune.bus.port import Bus, Subscription
from attune.kernel.batching import Batcher
from attune.kernel.envelope import Envelope
from attune.kernel.errors import NotFound
from attune.kernel.messages import Payload

Look = Callable[[Collection[int]], Awaitable[Mapping[int, bool]]]
Work = Callable[[Sequence[int]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Task:
    """`noun` and `id_of` say what an item names; `look` finds the rows and whether each needs work."""

    noun: str
    id_of: Callable[[Payload], int]
    look: Look
    work: Work


def _never(_envelope: Envelope) -> bool:
    return False


class Processor:
    """`is_done` knows messages that tell only of what was done in the commit behind them."""

    def __init__(
        self,
        name: str,
        bus: Bus,
        queue: str,
        task: Task,
        is_done: Callable[[Envelope], bool] = _never,
    ) -> None:
        self.name = name
        self._is_done = is_done
        self._bus = bus
        self._queue = queue
        self._task = task
        self._batches: Batcher[list[int], None] = Batcher(name, self._process)
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        self._subscription = await self._bus.consume(self._queue, self.handle)

    async def stop(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await subscription.cancel()
        await self._batches.stop()

    async def handle(self, envelope: Envelope) -> None:
        """Return when the work is committed; the message is acknowledged by that."""
        if self._is_done(envelope):
            return
        await self._batches.submit([self._task.id_of(item) for item in envelope.items])

    async def _process(self, batches: list[list[int]]) -> list[Exception | None]:
        found = await self._task.look({each for batch in batches for each in batch})
        if due := sorted(each for each, needed in found.items() if needed):
            await self._task.work(due)
        return [self._verdict(batch, found) for batch in batches]

    def _verdict(self, batch: list[int], found: Mapping[int, bool]) -> Exception | None:
        orphans = [each for each in batch if each not in found]
        if not orphans:
            return None
        noun = self._task.noun
        return NotFound(f"There is no {noun} {orphans[0]}, which the message names.", id=orphans[0])
