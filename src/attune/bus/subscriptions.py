"""Several subscriptions that end together."""

import asyncio
from collections.abc import Iterable

from attune.bus.port import Subscription


class Subscriptions:
    def __init__(self, parts: Iterable[Subscription]) -> None:
        self._parts = tuple(parts)

    async def cancel(self) -> None:
        await asyncio.gather(*(part.cancel() for part in self._parts))
