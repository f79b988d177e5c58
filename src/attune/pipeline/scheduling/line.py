"""Those that have a slot and wait for a worker, in the order in which they go: by band, then age, of all lanes.

With ageing, waiting is worth bands: the first of every band compete by the time at which each is due.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.decide import due
from attune.pipeline.queues.model import Entry
from attune.pipeline.scheduling.asides import SOME_ASIDE
from attune.pipeline.workers.model import Worker
from attune.store.database import Answer, Tx

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = ", ".join(Entry.__struct_fields__)
# What is put into these statements is of our own text.
_ANY_READY: Final = "SELECT execution FROM entry WHERE state = 'ready' LIMIT 1"
_STATE_COLUMNS: Final = f"""
    {SOME_ASIDE} AS aside,
    (SELECT CAST(s.value AS bigint) FROM setting s WHERE s.name = 'max_concurrent_executions') AS cap,
    (SELECT CAST(s.value AS float8) FROM setting s WHERE s.name = 'ageing_seconds') AS ageing,
    EXISTS (SELECT 1 FROM entry WHERE state = 'ready') AS waiting
"""  # noqa: S608
_STATE: Final = f"SELECT {_STATE_COLUMNS}"
_STANDING: Final = f"""
    SELECT {", ".join(f"w.{name}" for name in Worker.__struct_fields__)}, {_STATE_COLUMNS},
           (SELECT count(*) FROM entry e WHERE e.state = 'handed' AND e.worker = w.id) AS load
      FROM worker w
     WHERE w.id = :worker AND w.status IN ('active', 'error') AND NOT w.cordoned FOR UPDATE OF w
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


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Whether anybody waits for a worker, and whether a worker is set aside for some action. `cap` is the limit of the
    whole system, if it has one."""

    waiting: bool
    aside: bool
    cap: int | None
    ageing: float | None


class Standing(Worker, frozen=True, kw_only=True):
    """A worker, how much it has, and the state beside it."""

    load: int
    waiting: bool
    aside: bool
    cap: int | None
    ageing: float | None

    @property
    def state(self) -> State:
        return State(waiting=self.waiting, aside=self.aside, cap=self.cap, ageing=self.ageing)

    def after(self, freed: int, *, aside: bool) -> "Standing":
        """When so many have left it since. `aside`: it may have been set aside as well."""
        return msgspec.structs.replace(self, load=self.load - freed, aside=self.aside or aside)


class _Place(msgspec.Struct, frozen=True):
    """Up to where a reader has come."""

    enqueued_at: datetime = _LONG_AGO
    sequence: int = 0
    execution: int = 0

    @classmethod
    def of(cls, entry: Entry) -> "_Place":
        return cls(entry.enqueued_at, entry.sequence, entry.execution)


class ReadyLine:
    """Reads on from where it stopped. `fresh` got their slots in this transaction, and their rows do not say so yet."""

    def __init__(self, state: State, fresh: Iterable[Entry] = ()) -> None:
        self.cap = state.cap
        self.some_aside = state.aside
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


async def somebody(tx: Tx) -> list[ExecutionId]:
    """One of those that wait for a worker, if there are any."""
    return await tx.all(ExecutionId, _ANY_READY)


async def state_of(tx: Tx, now: datetime) -> Answer[State]:
    """Told with other statements."""
    return await tx.answer_later(State, _STATE, now=now)


async def standing_of(tx: Tx, worker: WorkerId, now: datetime) -> Answer[Standing]:
    """Told with the statements that follow, of which it does not know; nothing is told of a worker that is gone or
    cordoned. Its row is held until the transaction ends."""
    return await tx.answer_later(Standing, _STANDING, worker=worker, now=now)
