"""A transaction on an SQLite connection, and how a step is driven over it without an event loop."""

import sqlite3
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from attune.kernel.errors import StepMisuse
from attune.store.database import Tx
from attune.store.dialect import RowsParameter, for_sqlite
from attune.store.inserts import Insert
from attune.store.sqlite_errors import DRIVER_ERRORS, translated
from attune.store.values import Row, json_text, sqlite_list, sqlite_value

T = TypeVar("T")


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
        return tuple(column[0] for column in cursor.description or ()), rows

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
        bound = {
            p if isinstance(p, str) else p.name: _bound(p, parameters) for p in statement.parameters
        }
        try:
            return self._connection.execute(statement.sql, bound)
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> Exception:
        self.failure = translated(error) or error
        return self.failure


def _bound(parameter: str | RowsParameter, values: dict[str, Any]) -> Any:
    if isinstance(parameter, str):
        return sqlite_value(values[parameter])
    is_json = [kind == "jsonb" for kind in parameter.types]
    if not any(is_json):
        return sqlite_list(values[parameter.name])
    rows = (
        [
            json_text(v) if j and v is not None else sqlite_value(v)
            for v, j in zip(row, is_json, strict=True)
        ]
        for row in values[parameter.name]
    )
    return msgspec.json.encode(list(rows)).decode()


def drive(step: Coroutine[Any, Any, T]) -> T:
    """Run a step to its end on this thread. One that would have to wait is closed and refused."""
    try:
        step.send(None)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    step.close()
    raise StepMisuse("A step may await nothing but its transaction.")
