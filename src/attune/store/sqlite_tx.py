"""A transaction on an SQLite connection, and how a step is driven over it without an event loop."""

import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec
import sqlalchemy as sa

from attune.kernel.errors import StepMisuse
from attune.store.database import Answer, Tx
from attune.store.dialect import ListParameter, RowsParameter, Statement, for_sqlite
from attune.store.inserts import Insert
from attune.store.sqlite_errors import DRIVER_ERRORS, translated
from attune.store.values import PLAIN, Row, sqlite_row, sqlite_rows, sqlite_value

T = TypeVar("T")

_SHORT: Final = 16
# How a statement's rows are read, by their kind and its text: the driver would tell its columns anew each time.
_READERS: Final[dict[tuple[Any, str], Callable[[Row], Any]]] = {}


class IdCounters:
    """The last id of each table. One process owns the file, so memory is enough between its starts."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def take(self, connection: sqlite3.Connection, table: str, count: int) -> range:
        last = self._last.get(table)
        if last is None:
            row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
            last = next(row, (0,))[0]
        self._last[table] = last + count
        return range(last + 1, last + count + 1)


class SQLiteTx(Tx):
    """Nothing is put off here, and nothing waits."""

    sqlite = True

    def __init__(self, connection: sqlite3.Connection, ids: IdCounters) -> None:
        super().__init__()
        self._connection = connection
        self._ids = ids

    async def all(self, kind: type[T], sql: str, /, **parameters: Any) -> list[T]:
        return self._fetch(sql, parameters, kind)

    async def answer_later(self, kind: type[T], sql: str, /, **parameters: Any) -> Answer[T]:
        return Answer(self._fetch(sql, parameters, kind))

    async def execute(self, sql: str, /, **parameters: Any) -> int:
        return self._execute(sql, parameters)

    async def later(self, sql: str, /, **parameters: Any) -> None:
        self._execute(sql, parameters)

    async def insert_later(self, table: sa.Table, rows: Sequence[msgspec.Struct]) -> None:
        await self.insert(table, rows)

    async def settle(self) -> None:
        """All is done."""

    async def next_ids(self, table: sa.Table, count: int = 1) -> range:
        return self._ids.take(self._connection, table.name, count)

    async def _insert(self, insert: Insert, rows: Sequence[msgspec.Struct]) -> int:
        return self._write(insert, rows)

    def _fetch(self, sql: str, parameters: dict[str, Any], kind: type[T]) -> list[T]:
        cursor = self._perform(sql, parameters)
        try:
            rows = cursor.fetchall()
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error
        if not rows:
            return []
        read = _READERS.get((kind, sql))
        if read is None:
            columns = tuple(column[0] for column in cursor.description)
            read = _READERS[kind, sql] = self._reader(kind, columns)
        return [read(row) for row in rows]

    def _execute(self, sql: str, parameters: dict[str, Any]) -> int:
        return max(self._perform(sql, parameters).rowcount, 0)

    def _write(self, insert: Insert, rows: Sequence[msgspec.Struct]) -> int:
        self._check_usable()
        execute = self._connection.execute
        try:
            return sum(execute(*each).rowcount for each in insert.for_sqlite(rows))
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    def _perform(self, sql: str, parameters: dict[str, Any]) -> sqlite3.Cursor:
        self._check_usable()
        statement = for_sqlite(sql)
        self._check_parameters(statement, parameters)
        if counts := tuple(_short(statement.plural, parameters)):
            statement = for_sqlite(sql, counts)
        values = _bound(statement, parameters)
        try:
            return self._connection.execute(statement.sql, values)
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> Exception:
        self.failure = translated(error) or error
        return self.failure


def _short(plural: tuple[str, ...], values: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Each length makes a statement of its own, so only a few of them may."""
    for name in plural:
        if values[name] and len(values[name]) <= _SHORT:
            yield name, len(values[name])


def _bound(statement: Statement, values: dict[str, Any]) -> list[Any]:
    """By their numbers, as SQLite takes them."""
    bound: list[Any] = []
    for parameter in statement.parameters:
        if isinstance(parameter, str):
            bound.append(values[parameter])
        elif not parameter.count:
            bound.append(_as_table(parameter, values[parameter.name]))
        elif isinstance(parameter, ListParameter):
            bound += values[parameter.name]
        else:
            for row in values[parameter.name]:
                bound += sqlite_row(row, parameter.types)
    return [value if type(value) in PLAIN else sqlite_value(value) for value in bound]


def _as_table(parameter: ListParameter | RowsParameter, values: Any) -> Any:
    if isinstance(parameter, RowsParameter):
        return sqlite_rows(values, parameter.types)
    return values


def drive(step: Coroutine[Any, Any, T]) -> T:
    """Run a step to its end on this thread. One that would have to wait is closed and refused."""
    try:
        step.send(None)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    step.close()
    raise StepMisuse("A step may await nothing but its transaction.")
