"""The port: a database runs steps, and a step is a coroutine over a transaction.

    async def rename(tx: Tx, rule: RuleId, label: str) -> None:
        await tx.execute("UPDATE rule SET label = :label WHERE id = :rule", rule=rule, label=label)

    await database.run(rename, rule, "On disk full")

A step sees nothing but its transaction and its arguments, and awaits nothing but the transaction: on
SQLite it is driven to its end without a pause. It may run again after a conflict, so it changes
nothing else; what must follow the commit goes to `tx.on_commit`.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

import msgspec
import sqlalchemy as sa
import structlog

from attune.kernel.clock import Clock
from attune.kernel.errors import Contention, NotFound, Outdated, StepMisuse
from attune.store.dialect import Statement
from attune.store.inserts import Insert, insert_plan
from attune.store.values import Row, row_reader

T = TypeVar("T")
P = ParamSpec("P")

Step = Callable[Concatenate["Tx", P], Coroutine[Any, Any, T]]
Effect = Callable[[], None]
Listener = Callable[[str], None]

# Executions that a jot may be about: they take some milliseconds.
FEW: Final = 100

_ATTEMPTS: Final = 10
_FIRST_DELAY: Final = 0.005
_LONGEST_DELAY: Final = 0.2
_WAKE_KEY_BYTES: Final = 512

_log = structlog.get_logger()


@dataclass(slots=True)
class Answer(Generic[T]):
    """What a statement that was put off will have told."""

    rows: list[T]


class Tx(ABC):
    """One open transaction. After a statement has failed it takes no other, as on PostgreSQL."""

    sqlite: bool

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.wakes: set[tuple[str, str]] = set()
        self.failure: Exception | None = None

    @abstractmethod
    async def all(self, kind: type[T], sql: str, /, **parameters: Any) -> list[T]:
        """Every row as a `kind`: a struct by column names, or the first column as a plain value."""

    async def first(self, kind: type[T], sql: str, /, **parameters: Any) -> T | None:
        """The first row as a `kind`, or None where there is none (or a NULL where a value was asked for)."""
        rows = await self.all(kind, sql, **parameters)
        return rows[0] if rows else None

    async def one(self, kind: type[T], sql: str, /, **parameters: Any) -> T:
        """The row that must be there; its absence is `NotFound`."""
        found = await self.first(kind, sql, **parameters)
        if found is None:
            raise NotFound(f"no such row of {kind.__name__}", **parameters)
        return found

    @abstractmethod
    async def execute(self, sql: str, /, **parameters: Any) -> int:
        """Run a statement for its effect; the number of rows it touched."""

    @abstractmethod
    async def later(self, sql: str, /, **parameters: Any) -> None:
        """A write whose effect nobody needs to know: it leaves with the next statement or the commit, in its order."""

    @abstractmethod
    async def answer_later(self, kind: type[T], sql: str, /, **parameters: Any) -> Answer[T]:
        """The same for a statement whose rows nobody needs before the next one, `settle`, or the commit."""

    async def insert(
        self, table: sa.Table, rows: Sequence[msgspec.Struct], *, skip_existing: bool = False
    ) -> int:
        """Insert structs of one type into the columns of their fields' names, in one statement.

        With `skip_existing`, a row whose unique key is taken is left out. Returns how many went in.
        """
        if not rows:
            return 0
        return await self._insert(insert_plan(table, type(rows[0]), skip_existing), rows)

    @abstractmethod
    async def insert_later(self, table: sa.Table, rows: Sequence[msgspec.Struct]) -> None:
        """The same as a write whose effect nobody needs to know."""

    def on_commit(self, effect: Effect) -> None:
        """Call this on the event loop once the commit is certain, and never if it fails."""
        self.effects.append(effect)

    def wake(self, topic: str, key: str = "") -> None:
        """After the commit, hurry every listener of `topic`, in every process.

        The key is a hint, never data: one that is too long for a notification is sent as "", which means
        "look at everything".
        """
        self.wakes.add((topic, key if len(key.encode()) <= _WAKE_KEY_BYTES else ""))

    def _reader(self, kind: type[T], columns: tuple[str, ...]) -> Callable[[Row], T]:
        return row_reader(kind, columns, self.sqlite)  # type: ignore[arg-type]  # a type is hashable

    def _check_usable(self) -> None:
        if self.failure is not None:
            raise StepMisuse(
                "The transaction has failed and takes no further statement."
            ) from self.failure

    def _check_parameters(self, statement: Statement, given: dict[str, Any]) -> None:
        if given.keys() == statement.names:
            return
        raise StepMisuse(
            f"The statement takes the parameters {sorted(statement.names)}, not {sorted(given)}.",
            sql=statement.sql,
        )

    @abstractmethod
    async def settle(self) -> None:
        """Return when what was put off is done, and has answered."""

    @abstractmethod
    async def next_ids(self, table: sa.Table, count: int = 1) -> range | list[int]:
        """Fresh ids of a table. They rise within a transaction, are never given twice, and may leave gaps."""

    @abstractmethod
    async def _insert(self, insert: Insert, rows: Sequence[msgspec.Struct]) -> int: ...


class Database(ABC):
    """Runs steps, each in a transaction of its own. The only place that tries a step again."""

    def __init__(self, clock: Clock, source: random.Random) -> None:
        self._clock = clock
        self._random = source
        self._listeners: dict[str, list[Listener]] = {}

    async def run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Commit the step, whole or not at all. A conflict with others is tried again, nothing else is."""
        return await self._persist(self._run, step, *args, **kwargs)

    async def jot(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for a step that is known to be short: some rows, each found by a key.

        On SQLite two ways between threads take longer than such a step, so it may run where it is asked for. What
        writes hundreds of rows is for `run`.
        """
        return await self._persist(self._jot, step, *args, **kwargs)

    async def read(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a step that only reads, on one snapshot, beside the writers."""
        return await self._persist(self._read, step, *args, **kwargs)

    async def glance(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for a step that is known to be short: a few rows, each found by a key.

        On SQLite such a step takes less time than to hand it to a thread, so it runs where it is asked for, and
        everybody else on the event loop waits for it. What searches, counts, lists or follows a tree is for `read`.
        """
        return await self._persist(self._glance, step, *args, **kwargs)

    async def _persist(
        self,
        run: Callable[..., Awaitable[T]],
        step: Step[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        for attempt in range(1, _ATTEMPTS):
            try:
                return await run(step, *args, **kwargs)
            except Contention as error:
                delay = min(_FIRST_DELAY * 2**attempt, _LONGEST_DELAY)
                _log.debug(
                    "Step met a conflict and is tried again.",
                    step=step.__name__,
                    attempt=attempt,
                    error=str(error),
                )
                if not isinstance(error, Outdated):
                    await self._clock.sleep(delay * self._random.uniform(0.5, 1.5))
        return await run(step, *args, **kwargs)

    async def tidy(self, table: sa.Table, at_least: int) -> int | None:  # noqa: ARG002
        """Take away what is left of changed and deleted rows, where they lie in the way of those that are looked for: how
        many had to stay, because somebody may still read them. None where there are fewer than so many, or none at all."""
        return None

    def listen(self, topic: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the key of each wake; with "" when wakes may have been missed. Returns the way to stop."""
        listeners = self._listeners.setdefault(topic, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def topics(self) -> list[str]:
        """What anyone listens to now."""
        return [topic for topic, listeners in self._listeners.items() if listeners]

    def _deliver(self, wakes: Iterable[tuple[str, str]]) -> None:
        for topic, key in wakes:
            for listener in tuple(self._listeners.get(topic, ())):
                listener(key)

    @abstractmethod
    async def open(self) -> None:
        """Connect, or raise `DatabaseUnavailable` with what is wrong."""

    @abstractmethod
    async def close(self) -> None:
        """Let running steps finish, then let go. Closing twice is safe."""

    @abstractmethod
    async def _run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @abstractmethod
    async def _read(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def _jot(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(step, *args, **kwargs)

    async def _glance(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._read(step, *args, **kwargs)
