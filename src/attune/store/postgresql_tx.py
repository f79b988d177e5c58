"""A transaction on a PostgreSQL session. What nobody waits for is put off, and goes with the next that somebody does."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa

from attune.store.database import Answer, Tx
from attune.store.dialect import RowsParameter, Size, Statement, for_postgresql
from attune.store.id_reserve import IdReserve
from attune.store.inserts import Insert, insert_plan
from attune.store.notifications import CHANNEL
from attune.store.postgresql_errors import DRIVER_ERRORS, translated
from attune.store.postgresql_session import Call, Rows, Session
from attune.store.schema import SCHEMA
from attune.store.values import Row, json_text

T = TypeVar("T")

READ_ONLY: Final = Call("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

_BEGIN: Final = Call("BEGIN")
_COMMIT: Final = Call("COMMIT")
_ROLLBACK: Final = Call("ROLLBACK")
_RESERVED_IDS: Final = 32
# The condition gives the transaction an id of its own, so that its commit writes the sequence's advance to the disk.
_NEXT_IDS: Final = """
    SELECT nextval('{sequence}') FROM generate_series(1, :n) WHERE pg_current_xact_id() IS NOT NULL
"""
_NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', wake) FROM unnest($1::text[]) AS wake"


class _PutOff(NamedTuple):
    """A statement to be sent with the next one. `take` gets what it tells, if anybody wants to know."""

    call: Call
    take: Callable[[Rows], None] | None = None


class PostgreSQLTx(Tx):
    sqlite = False

    def __init__(
        self, session: Session, server: str, ids: IdReserve, begin: Call | None = _BEGIN
    ) -> None:
        super().__init__()
        self._session = session
        self._server = server
        self._ids = ids
        self._fetched = IdReserve()
        self._begin = begin
        self._put_off: list[_PutOff] = []

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

    async def all(self, kind: type[T], sql: str, /, **parameters: Any) -> list[T]:
        columns, rows = await self._fetch(sql, parameters)
        if not rows:
            return []
        read = self._reader(kind, columns)
        return [read(row) for row in rows]

    async def execute(self, sql: str, /, **parameters: Any) -> int:
        return await self._execute(sql, parameters)

    async def _fetch(
        self, sql: str, parameters: dict[str, Any]
    ) -> tuple[tuple[str, ...], Sequence[Row]]:
        told = await self._ask(self._call(sql, parameters))
        return told.columns, told.rows

    async def _execute(self, sql: str, parameters: dict[str, Any]) -> int:
        return (await self._ask(self._call(sql, parameters))).touched

    async def _insert(self, insert: Insert, rows: Sequence[msgspec.Struct]) -> int:
        self._check_usable()
        return (await self._ask(Call(*insert.for_postgresql(rows)))).touched

    async def later(self, sql: str, /, **parameters: Any) -> None:
        self._put_off.append(_PutOff(self._call(sql, parameters)))

    async def insert_later(self, table: sa.Table, rows: Sequence[msgspec.Struct]) -> None:
        self._check_usable()
        if rows:
            insert = insert_plan(table, type(rows[0]), skip_existing=False)
            self._put_off.append(_PutOff(Call(*insert.for_postgresql(rows))))

    async def answer_later(self, kind: type[T], sql: str, /, **parameters: Any) -> Answer[T]:
        answer: Answer[T] = Answer([])

        def take(told: Rows) -> None:
            read = self._reader(kind, told.columns)
            answer.rows = [read(row) for row in told.rows]

        self._put_off.append(_PutOff(self._call(sql, parameters), take))
        return answer

    async def settle(self) -> None:
        self._check_usable()
        if self._put_off:
            await self._send()

    async def commit(self) -> None:
        """Do what was put off, and commit, in one round trip. PostgreSQL delivers the wakes only if it succeeds, and once
        each."""
        if self.failure is not None:
            raise self.failure
        if self.wakes:
            wakes = [f"{topic}\n{key}" for topic, key in sorted(self.wakes)]
            self._put_off.append(_PutOff(Call(_NOTIFY, [wakes])))
        if self._begin is None or self._put_off:
            await self._send(_COMMIT)

    async def roll_back(self) -> None:
        """A session that is closed has nothing to roll back."""
        if self._session.is_in_transaction:
            try:
                await self._session.ask(_ROLLBACK)
            except DRIVER_ERRORS:
                self._session.close()

    async def _ask(self, call: Call) -> Rows:
        return (await self._send(call))[-1]

    async def _send(self, *calls: Call) -> list[Rows]:
        begin = () if self._begin is None else (self._begin,)
        put_off, self._put_off = self._put_off, []
        try:
            told = await self._session.ask(*begin, *(one.call for one in put_off), *calls)
        except DRIVER_ERRORS as error:
            self.failure = translated(error, self._server) or error
            raise self.failure from error
        self._begin = None
        for one, rows in zip(put_off, told[len(begin) :], strict=False):
            if one.take is not None:
                one.take(rows)
        return told

    def _call(self, sql: str, parameters: dict[str, Any]) -> Call:
        self._check_usable()
        statement = for_postgresql(sql)
        self._check_parameters(statement, parameters)
        if statement.plural:
            rows = [len(parameters[name]) for name in statement.plural]
            statement = for_postgresql(sql, Size.of(rows))
        return Call(statement.sql, _bound(statement, parameters))


class SnapshotNeeded(Exception):
    """A step that reads asks for more than one statement, or for one that may do more than read. It begins anew, in a
    transaction."""


class SingleStatementTx(PostgreSQLTx):
    """No transaction at all: the one statement that it takes is a snapshot by itself."""

    _is_used = False

    def __init__(self, session: Session, server: str, ids: IdReserve) -> None:
        super().__init__(session, server, ids, begin=None)

    def _call(self, sql: str, parameters: dict[str, Any]) -> Call:
        if self._is_used or not sql.lstrip().startswith("SELECT"):
            raise SnapshotNeeded
        self._is_used = True
        return super()._call(sql, parameters)

    async def _insert(self, *_: object) -> int:
        raise SnapshotNeeded

    async def insert_later(self, *_: object) -> None:
        raise SnapshotNeeded


def _bound(statement: Statement, values: dict[str, Any]) -> list[Any]:
    bound: list[Any] = []
    for parameter in statement.parameters:
        if isinstance(parameter, str):
            bound.append(values[parameter])
        elif isinstance(parameter, RowsParameter):
            columns = _columns(parameter, values[parameter.name])
            bound += [one for [one] in columns] if parameter.count else columns
    return bound


def _columns(parameter: RowsParameter, rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows turned on their side, as unnest takes them; JSON goes as text."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in parameter.types]
    return [
        [None if v is None else json_text(v) for v in column] if kind == "jsonb" else column
        for kind, column in zip(parameter.types, columns, strict=True)
    ]
