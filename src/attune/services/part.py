"""What a process is made of."""

import asyncio
from typing import Protocol


class Part(Protocol):
    """Something with a beginning and an end: a connection, a server, a consumer, a duty."""

    @property
    def name(self) -> str: ...

    async def start(self) -> asyncio.Task[None] | None:
        """Return when it works. A task that is returned must live as long as the process does."""

    async def stop(self) -> None:
        """Finish what is under way, then let go. Stopping twice, or what never started, is safe."""
