"""A transaction on a PostgreSQL connection. Writes that nobody waits for are put off, and go in one round trip."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

import asyncpg
import msgspec
import sqlalchemy as sa

from attune.store.database import Answer, Tx
from attune.store.dialect import RowsParameter, Statement, for_postgresql
from attune.store.id_reserve import IdReserve
from attune.store.inserts import Insert, insert_plan
from attune.store.notifications import CHANNEL
from attune.store.postgresql_errors import DRIVER_ERRORS, translated
from attune.store.schema import SCHEMA
from attune.store.values import Row, json_text
from attune.store.writes import Write, together

T = TypeVar("T")

_RESERVED_IDS: Final = 32
# The condition gives the transaction an id of its own, so that its commit writes the sequence's advance to the disk.
_NEXT_IDS: Final = """
    SELECT nextval('{sequence}') FROM generate_series(1, :n) WHERE pg_current_xact_id() IS NOT NULL
"""
_NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', wake) FROM unnest($1::text[]) AS wake"


class PostgreSQLTx(Tx):
    sqlite = False

    def __init__(self, connection: asyncpg.Connection, server: str, ids: IdReserve) -> None:
        super().__init__()
        self._connection = connection
        self._server = server
        self._ids = ids
        self._fetched = IdReserve()
        self._writes: list[Write] = []

    async def next_ids(self, table: sa.Table, count: int = 1) -> list[int]:
        if not self._fetched.has(table.name) and (kept := self._ids.take(table.name, count)):
            return kept
        while (found := self._fetched.take(table.name, count)) is None:
            sequence = _NEXT_IDS.format(sequence=f"{SCHEMA}.{table.name}_id_seq")
            more = await self.all(int, sequence, n=max(count, _RESERVED_IDS))
            self._fetched.add(table.name, more)
        return found

    def keep_ids(self) -> None:
        """Leave what is left over to others. Only after the commit: a server that dies before it forgets that it gave
        them, and gives them out again."""
        self._ids.add_all(self._fetched)

    async def _fetch(
        self, sql: str, parameters: dict[str, Any]
    ) -> tuple[tuple[str, ...], Sequence[Row]]:
        statement = await self._prepared(sql, parameters)
        try:
            rows = await self._connection.fetch(statement.sql, *_bound(statement, parameters))
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error
        return (tuple(rows[0].keys()) if rows else ()), rows

    async def _execute(self, sql: str, parameters: dict[str, Any]) -> int:
        statement = await self._prepared(sql, parameters)
        try:
            bound = _bound(statement, parameters)
            return _touched(await self._connection.execute(statement.sql, *bound))
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    async def _insert(self, insert: Insert, rows: Sequence[msgspec.Struct]) -> int:
        self._check_usable()
        await self._flush()
        try:
            values = insert.values_of(rows)
            return _touched(await self._connection.execute(insert.for_postgresql, *values))
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    async def later(self, sql: str, /, **parameters: Any) -> None:
        self._check_usable()
        statement = self._checked(sql, parameters)
        await self._put_off(Write(statement.sql, _bound(statement, parameters)))

    async def insert_later(self, table: sa.Table, rows: Sequence[msgspec.Struct]) -> None:
        self._check_usable()
        if rows:
            insert = insert_plan(table, type(rows[0]), skip_existing=False)
            await self._put_off(Write(insert.for_postgresql, insert.values_of(rows)))

    async def answer_later(self, kind: type[T], sql: str, /, **parameters: Any) -> Answer[T]:
        self._check_usable()
        statement = self._checked(sql, parameters)
        answer: Answer[T] = Answer([])
        read = _rows_reader(kind)  # type: ignore[arg-type]  # a type is hashable

        def take(rows: str) -> None:
            answer.rows = read(rows)

        await self._put_off(Write(statement.sql, _bound(statement, parameters), take))
        return answer

    async def settle(self) -> None:
        self._check_usable()
        await self._flush()

    async def finish(self) -> None:
        """Write what was put off, and send the wakes with the commit: PostgreSQL delivers them only if it succeeds,
        and once each."""
        if self.failure is not None:
            raise self.failure
        if self.wakes:
            wakes = [f"{topic}\n{key}" for topic, key in sorted(self.wakes)]
            self._writes.append(Write(_NOTIFY, [wakes], _unheard))
        await self._flush()

    async def _put_off(self, write: Write) -> None:
        if any(one.sql == write.sql for one in self._writes):
            await self._flush()
        self._writes.append(write)

    async def _flush(self) -> None:
        if not self._writes:
            return
        joint = together(self._writes)
        self._writes = []
        try:
            rows = await self._connection.fetch(joint.sql, *joint.values)
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error
        for number, take in enumerate(joint.takes):
            take(rows[0][number])

    async def _prepared(self, sql: str, parameters: dict[str, Any]) -> Statement:
        self._check_usable()
        await self._flush()
        return self._checked(sql, parameters)

    def _checked(self, sql: str, parameters: dict[str, Any]) -> Statement:
        statement = for_postgresql(sql)
        self._check_parameters(statement, parameters)
        return statement

    def _failed(self, error: Exception) -> Exception:
        self.failure = translated(error, self._server) or error
        return self.failure


class SnapshotNeeded(Exception):
    """A step that reads asks for more than one statement, or for one that may do more than read. It begins anew, in a
    transaction."""


class SingleStatementTx(PostgreSQLTx):
    """No transaction at all: the one statement that it takes is a snapshot by itself."""

    _is_used = False

    async def _prepared(self, sql: str, parameters: dict[str, Any]) -> Statement:
        if self._is_used or not sql.lstrip().startswith("SELECT"):
            raise SnapshotNeeded
        self._is_used = True
        return await super()._prepared(sql, parameters)

    async def _insert(self, *_: object) -> int:
        raise SnapshotNeeded

    async def _put_off(self, _: Write) -> None:
        raise SnapshotNeeded


def _unheard(_rows: str) -> None:
    """What is sent with a wake says nothing."""


@cache
def _rows_reader(kind: Any) -> Callable[[str], list[Any]]:
    return msgspec.json.Decoder(list[kind]).decode


def _touched(status: str) -> int:
    """The count at the end of the server's answer, as in "UPDATE 3"; a CREATE has none."""
    count = status.rpartition(" ")[2]
    return int(count) if count.isdigit() else 0


def _bound(statement: Statement, values: dict[str, Any]) -> list[Any]:
    bound: list[Any] = []
    for parameter in statement.parameters:
        if isinstance(parameter, RowsParameter):
            bound += _columns(parameter, values[parameter.name])
        else:
            bound.append(values[parameter])
    return bound


def _columns(parameter: RowsParameter, rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows turned on their side, as unnest takes them; JSON goes as text."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in parameter.types]
    return [
        [None if v is None else json_text(v) for v in column] if kind == "jsonb" else column
        for kind, column in zip(parameter.types, columns, strict=True)
    ]
