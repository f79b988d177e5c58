"""Those that have a slot and wait for a worker, in the order in which they go: by band, then age, of all lanes.

With ageing, waiting is worth bands: the first of every band compete by the time at which each is due.
"""

from datetime import UTC, datetime
from typing import Final

import msgspec

from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.decide import due
from attune.pipeline.queues.model import Entry, Waiter
from attune.pipeline.scheduling.asides import SOME_ASIDE
from attune.store.database import Tx

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = ", ".join(Entry.__struct_fields__)
# What is put into these statements is of our own text.
_STATE: Final = f"""
    SELECT EXISTS (SELECT 1 FROM entry WHERE state = 'ready') AS waiting, {SOME_ASIDE} AS aside,
           (SELECT CAST(s.value AS bigint) FROM setting s WHERE s.name = 'max_concurrent_executions')
               AS cap,
           (SELECT CAST(s.value AS float8) FROM setting s WHERE s.name = 'ageing_seconds') AS ageing
"""  # noqa: S608
_READY: Final = f"""
    SELECT {_COLUMNS} FROM entry
     WHERE state = 'ready'
       AND (band, enqueued_at, sequence, execution) > (:band, :enqueued_at, :sequence, :execution)
     ORDER BY band, enqueued_at, sequence, execution LIMIT :page FOR UPDATE SKIP LOCKED
"""  # noqa: S608
_READY_IN_BAND: Final = f"""
    SELECT {_COLUMNS} FROM entry
     WHERE state = 'ready' AND band = :band
       AND (enqueued_at, sequence, execution) > (:enqueued_at, :sequence, :execution)
     ORDER BY enqueued_at, sequence, execution LIMIT :page FOR UPDATE SKIP LOCKED
"""  # noqa: S608


class _State(msgspec.Struct, frozen=True):
    waiting: bool
    aside: bool
    cap: int | None
    ageing: float | None


class _Place(msgspec.Struct, frozen=True):
    """Up to where a reader has come."""

    enqueued_at: datetime = _LONG_AGO
    sequence: int = 0
    execution: int = 0

    @classmethod
    def of(cls, entry: Entry) -> "_Place":
        return cls(entry.enqueued_at, entry.sequence, entry.execution)


class ReadyLine:
    """Reads on from where it stopped. `cap` is the limit of the whole system, if it has one; `some_aside` tells that a
    worker is set aside for some action."""

    def __init__(self, cap: int | None, ageing: float | None, *, some_aside: bool) -> None:
        self.cap = cap
        self.some_aside = some_aside
        self._ageing = ageing
        self._band = -1
        self._after = _Place()
        self._after_in = dict.fromkeys(Priority, _Place())

    @property
    def is_aged(self) -> bool:
        return self._ageing is not None

    async def next(self, tx: Tx, count: int) -> list[Entry]:
        if self._ageing is not None:
            return await self._next_aged(tx, count)
        after = msgspec.structs.asdict(self._after)
        found = await tx.all(Entry, _READY, band=self._band, page=count, **after)
        if found:
            self._band, self._after = found[-1].band, _Place.of(found[-1])
        return found

    async def _next_aged(self, tx: Tx, count: int) -> list[Entry]:
        found: list[Entry] = []
        for band, after in self._after_in.items():
            place = msgspec.structs.asdict(after)
            found += await tx.all(Entry, _READY_IN_BAND, band=band, page=count, **place)
        found = sorted(found, key=lambda one: (*due(_waiter(one), self._ageing), one.execution))
        for one in found[:count]:
            self._after_in[one.band] = _Place.of(one)
        return found[:count]


async def ready_line(tx: Tx, now: datetime) -> ReadyLine | None:
    """Null when nobody waits for a worker."""
    state = await tx.one(_State, _STATE, now=now)
    if not state.waiting:
        return None
    return ReadyLine(state.cap, state.ageing, some_aside=state.aside)


def _waiter(entry: Entry) -> Waiter:
    return Waiter(entry.execution, entry.band, entry.sequence, entry.enqueued_at)
