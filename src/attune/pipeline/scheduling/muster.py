"""All workers that are there, asked for when they are needed, or along with statements before that."""

from datetime import datetime

from attune.pipeline.scheduling.line import State, state_of
from attune.pipeline.workers.steps import Presence, lock_present
from attune.store.database import Answer, Tx

_Asked = tuple[Presence, Answer[State]]


class Muster:
    """The workers, locked, and the state beside them."""

    def __init__(self, tx: Tx, now: datetime, *, waits: bool) -> None:
        self._tx = tx
        self._now = now
        self._waits = waits
        self._asked: _Asked | None = None

    async def ask(self) -> None:
        """Along with the statements that follow, of which they do not know."""
        self._asked = await self._ask()

    async def told(self) -> tuple[Presence, State]:
        """As they were when they were asked for, or else now."""
        asked = self._asked
        if asked is None:
            asked = await self._ask()
            await self._tx.settle()
        present, told = asked
        return present, told.rows[0]

    async def _ask(self) -> _Asked:
        present = await lock_present(self._tx, waits=self._waits)
        return present, await state_of(self._tx, self._now)
