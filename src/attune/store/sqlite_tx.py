"""A transaction on an SQLite connection, and how a step is driven over it without an event loop."""

import sqlite3
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

import msgspec
import sqlalchemy as sa

from attune.kernel.errors import StepMisuse
from attune.store.database import Tx
from attune.store.dialect import Statement, for_sqlite
from attune.store.inserts import Insert
from attune.store.sqlite_errors import DRIVER_ERRORS, translated
from attune.store.values import PLAIN, Row, sqlite_rows, sqlite_value

T = TypeVar("T")

# What a statement answers with, by its text: the driver would tell it anew each time.
_COLUMNS: Final[dict[str, tuple[str, ...]]] = {}


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
    sqlite = True

    def __init__(self, connection: sqlite3.Connection, ids: IdCounters) -> None:
        super().__init__()
        self._connection = connection
        self._ids = ids

    async def settle(self) -> None:
        """Nothing is put off here."""

    async def next_ids(self, table: sa.Table, count: int = 1) -> range:
        return self._ids.take(self._connection, table.name, count)

    async def _fetch(
        self, sql: str, parameters: dict[str, Any]
    ) -> tuple[tuple[str, ...], Sequence[Row]]:
        cursor = self._perform(sql, parameters)
        try:
            rows = cursor.fetchall()
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error
        columns = _COLUMNS.get(sql)
        if columns is None:
            columns = _COLUMNS[sql] = tuple(column[0] for column in cursor.description or ())
        return columns, rows

    async def _execute(self, sql: str, parameters: dict[str, Any]) -> int:
        return max(self._perform(sql, parameters).rowcount, 0)

    async def _insert(self, insert: Insert, rows: Sequence[msgspec.Struct]) -> int:
        self._check_usable()
        try:
            return self._connection.executemany(insert.for_sqlite, insert.rows_of(rows)).rowcount
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    def _perform(self, sql: str, parameters: dict[str, Any]) -> sqlite3.Cursor:
        self._check_usable()
        statement = for_sqlite(sql)
        self._check_parameters(statement, parameters)
        _bind(statement, parameters)
        try:
            return self._connection.execute(statement.sql, parameters)
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> Exception:
        self.failure = translated(error) or error
        return self.failure


def _bind(statement: Statement, parameters: dict[str, Any]) -> None:
    """Turn the values into what SQLite takes, in their place."""
    for table in statement.tables:
        parameters[table.name] = sqlite_rows(parameters[table.name], table.types)
    for name, value in parameters.items():
        if type(value) not in PLAIN:
            parameters[name] = sqlite_value(value)


def drive(step: Coroutine[Any, Any, T]) -> T:
    """Run a step to its end on this thread. One that would have to wait is closed and refused."""
    try:
        step.send(None)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    step.close()
    raise StepMisuse("A step may await nothing but its transaction.")
