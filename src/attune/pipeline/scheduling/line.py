"""Those that have a slot and wait for a worker, in the order in which they go: by band, then age, of all lanes.

With ageing, waiting is worth bands: the first of every band compete by the time at which each is due.
"""

from datetime import UTC, datetime
from typing import Final

import msgspec

from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.decide import due
from attune.pipeline.queues.model import Entry, Waiter
from attune.store.database import Tx

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = ", ".join(Entry.__struct_fields__)
_STATE: Final = """
    SELECT EXISTS (SELECT 1 FROM entry WHERE state = 'ready') AS waiting,
           (SELECT CAST(s.value AS bigint) FROM setting s WHERE s.name = 'max_concurrent_executions')
               AS cap,
           (SELECT CAST(s.value AS float8) FROM setting s WHERE s.name = 'ageing_seconds') AS ageing
"""
# The names in these statements are those of our own structs.
_READY: Final = f"""
    SELECT {_COLUMNS} FROM entry
     WHERE state = 'ready' AND (band, enqueued_at, sequence) > (:band, :enqueued_at, :sequence)
     ORDER BY band, enqueued_at, sequence LIMIT :page FOR UPDATE SKIP LOCKED
"""  # noqa: S608
_READY_IN_BAND: Final = f"""
    SELECT {_COLUMNS} FROM entry
     WHERE state = 'ready' AND band = :band AND (enqueued_at, sequence) > (:enqueued_at, :sequence)
     ORDER BY enqueued_at, sequence LIMIT :page FOR UPDATE SKIP LOCKED
"""  # noqa: S608


class _State(msgspec.Struct, frozen=True):
    waiting: bool
    cap: int | None
    ageing: float | None


class ReadyLine:
    """Reads on from where it stopped. `cap` is the limit of the whole system, if it has one."""

    def __init__(self, cap: int | None, ageing: float | None) -> None:
        self.cap = cap
        self._ageing = ageing
        self._after: tuple[int, datetime, int] = (-1, _LONG_AGO, 0)
        self._after_in = dict.fromkeys(Priority, (_LONG_AGO, 0))

    @property
    def is_aged(self) -> bool:
        return self._ageing is not None

    async def next(self, tx: Tx, count: int) -> list[Entry]:
        if self._ageing is not None:
            return await self._next_aged(tx, count)
        band, enqueued_at, sequence = self._after
        found = await tx.all(
            Entry, _READY, band=band, enqueued_at=enqueued_at, sequence=sequence, page=count
        )
        if found:
            last = found[-1]
            self._after = (last.band, last.enqueued_at, last.sequence)
        return found

    async def _next_aged(self, tx: Tx, count: int) -> list[Entry]:
        found: list[Entry] = []
        for band, (enqueued_at, sequence) in self._after_in.items():
            found += await tx.all(
                Entry,
                _READY_IN_BAND,
                band=band,
                enqueued_at=enqueued_at,
                sequence=sequence,
                page=count,
            )
        found = sorted(found, key=lambda one: due(_waiter(one), self._ageing))[:count]
        for one in found:
            self._after_in[one.band] = (one.enqueued_at, one.sequence)
        return found


async def ready_line(tx: Tx) -> ReadyLine | None:
    """Null when nobody waits for a worker."""
    state = await tx.one(_State, _STATE)
    return ReadyLine(state.cap, state.ageing) if state.waiting else None


def _waiter(entry: Entry) -> Waiter:
    return Waiter(entry.execution, entry.band, entry.sequence, entry.enqueued_at)
