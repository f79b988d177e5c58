"""Those that have a slot and wait for a worker, in the order in which they go: by band, then age, of all lanes.

With ageing, waiting is worth bands: the first of every band compete by the time at which each is due.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from attune.kernel.ids import WorkerId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.decide import due
from attune.pipeline.queues.model import Entry
from attune.pipeline.scheduling.asides import SOME_ASIDE
from attune.store.database import Tx

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = ", ".join(Entry.__struct_fields__)
# What is put into these statements is of our own text.
_STATE: Final = f"""
    SELECT EXISTS (SELECT 1 FROM entry WHERE state = 'ready') AS waiting, {SOME_ASIDE} AS aside,
           (SELECT CAST(s.value AS bigint) FROM setting s WHERE s.name = 'max_concurrent_executions')
               AS cap,
           (SELECT CAST(s.value AS float8) FROM setting s WHERE s.name = 'ageing_seconds') AS ageing,
           (SELECT count(*) FROM entry WHERE state = 'handed' AND worker = :worker) AS load
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
    load: int


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
    worker is set aside for some action. `load` is how much the worker has that was asked for.

    `fresh` got their slots in this transaction, and their rows do not say so yet.
    """

    def __init__(self, state: _State, fresh: Iterable[Entry]) -> None:
        self.cap = state.cap
        self.some_aside = state.aside
        self.load = state.load
        self._ageing = state.ageing
        self._has_rows = state.waiting
        self._fresh = {one.execution: one for one in fresh}
        self._band = -1
        self._after = _Place()
        self._after_in = dict.fromkeys(Priority, _Place())

    @property
    def is_aged(self) -> bool:
        return self._ageing is not None

    async def next(self, tx: Tx, count: int) -> list[Entry]:
        """Fewer than so many only if there are no more."""
        found = await self._rows(tx, count) if self._has_rows else []
        if self._fresh or self.is_aged:
            found = sorted([*found, *self._fresh.values()], key=self._order)[:count]
        for one in found:
            if self._fresh.pop(one.execution, None) is None:
                self._band = one.band
                self._after = self._after_in[one.band] = _Place.of(one)
        return found

    async def _rows(self, tx: Tx, count: int) -> list[Entry]:
        """The next of all, or with ageing the next of every band."""
        if not self.is_aged:
            after = msgspec.structs.asdict(self._after)
            return await tx.all(Entry, _READY, band=self._band, page=count, **after)
        found: list[Entry] = []
        for band, after_it in self._after_in.items():
            place = msgspec.structs.asdict(after_it)
            found += await tx.all(Entry, _READY_IN_BAND, band=band, page=count, **place)
        return found

    def _order(self, one: Entry) -> tuple[object, ...]:
        return (*due(one, self._ageing), one.execution)


async def ready_line(
    tx: Tx, now: datetime, worker: WorkerId | None = None, fresh: Collection[Entry] = ()
) -> ReadyLine | None:
    """Null when nobody waits for a worker."""
    state = await tx.one(_State, _STATE, worker=worker, now=now)
    if not state.waiting and not fresh:
        return None
    return ReadyLine(state, fresh)
