"""Keeps the heads of queues short of dead rows.

PostgreSQL leaves what was deleted in its place until somebody takes it away. Whoever looks for the first in a queue passes
all that have left it: thousands a second under load. The server's own vacuum comes once a minute at most.
"""

from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.store.database import Database
from attune.store.schema import entry


class TidyingConfig(DutyConfig, frozen=True, kw_only=True):
    """`dead_rows` are worth it. What 120,000 executions left made the look for the next one nine times as long."""

    interval: float = 2.0
    dead_rows: int = 10_000


class Tidying(Duty[TidyingConfig]):
    name = "tidying"

    def __init__(
        self, database: Database, clock: Clock, config: TidyingConfig | None = None
    ) -> None:
        super().__init__(config or TidyingConfig(), clock)
        self._database = database
        self._stayed = 0

    async def run_once(self) -> None:
        """What stays, because a long transaction may still read it, is not tried again until there is twice as much."""
        worth_it = max(self.config.dead_rows, 2 * self._stayed)
        stayed = await self._database.tidy(entry, worth_it)
        if stayed is not None:
            self._stayed = stayed
