"""One session with a PostgreSQL server, through libpq: any number of statements in one round trip.

The usual drivers wait for each answer before they send the next statement. Here a transaction's BEGIN leaves with its
first statement, and its COMMIT with its last.
"""

import asyncio
import select
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.string import TextLoader

from attune.store.postgresql_values import Prepared, prepared
from attune.store.values import Row

_MOST_STATEMENTS: Final = 1024
_CANCEL_SECONDS: Final = 5.0


class Call(NamedTuple):
    """A statement with `$1` for its first value."""

    sql: str
    values: Sequence[Any] = ()


class Rows(NamedTuple):
    """What a statement told; `touched` also counts what it changed without telling."""

    columns: tuple[str, ...]
    rows: Sequence[Row]
    touched: int


class Session:
    """Takes one `ask` at a time. One that failed in the middle of a round trip is closed, and takes no more."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], timeout: float) -> None:
        self.closed = asyncio.Event()
        self.on_notification: Callable[[str], None] | None = None
        self._connection = connection
        self._libpq = connection.pgconn
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._statements: dict[str, Prepared] = {}
        self._names = count()
        self._answer: asyncio.Future[list[PGresult]] | None = None
        self._results: list[PGresult] = []
        self._last_words: psycopg.Error | None = None
        self._is_outdated = False
        for kind in ("json", "jsonb"):
            connection.adapters.register_loader(kind, TextLoader)
        self._reader = Transformer(connection)
        self._libpq.nonblocking = 1
        self._libpq.enter_pipeline_mode()
        self._libpq.notice_handler = self._heed
        self._socket = self._libpq.socket
        self._input = select.poll()
        self._input.register(self._socket, select.POLLIN)
        self._loop.add_reader(self._socket, self._receive)

    @property
    def is_reusable(self) -> bool:
        """Whether another transaction may begin on it."""
        return (
            not self.closed.is_set()
            and not self._is_outdated
            and len(self._statements) < _MOST_STATEMENTS
            and self._libpq.transaction_status == TransactionStatus.IDLE
        )

    @property
    def is_in_transaction(self) -> bool:
        return not self.closed.is_set() and self._libpq.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        )

    async def ask(self, *calls: Call) -> list[Rows]:
        """One round trip, and one more for statements that are new to this session.

        After one that fails, none of the rest is done.
        """
        if new := {call.sql for call in calls}.difference(self._statements):
            await self._prepare(sorted(new))
        known = [self._statements[call.sql] for call in calls]
        values = [one.encoded(call.values) for one, call in zip(known, calls, strict=True)]
        self._check_open()
        for one, sent in zip(known, values, strict=True):
            self._libpq.send_query_prepared(one.name, sent, one.formats)
        results = await self._round_trip()
        return [self._read(*each) for each in zip(known, results, strict=True)]

    def close(self) -> None:
        """At once, without a word to the server. It ends what the session has not committed."""
        self._lose(psycopg.OperationalError("the connection is closed"))

    async def _prepare(self, statements: Sequence[str]) -> None:
        self._check_open()
        names = [b"attune_%d" % next(self._names) for _ in statements]
        for name, sql in zip(names, statements, strict=True):
            self._libpq.send_prepare(name, sql.encode())
            self._libpq.send_describe_prepared(name)
        described = (await self._round_trip())[1::2]
        for name, sql, told in zip(names, statements, described, strict=True):
            self._statements[sql] = prepared(name, told)

    def _check_open(self) -> None:
        if self.closed.is_set():
            raise self._last_words or psycopg.OperationalError("the connection is closed")

    async def _round_trip(self) -> list[PGresult]:
        answer: asyncio.Future[list[PGresult]] = self._loop.create_future()
        self._answer = answer
        deadline = self._loop.call_later(self._timeout, self._expire)
        try:
            self._libpq.pipeline_sync()
            self._send()
            results = await answer
        except BaseException:
            self._abandon()
            raise
        finally:
            deadline.cancel()
        for one in results:
            if one.status == ExecStatus.FATAL_ERROR:
                error = psycopg.errors.error_from_result(one)
                # A table has changed since a statement was prepared: the next session knows it as it is now.
                self._is_outdated |= isinstance(error, psycopg.errors.FeatureNotSupported)
                raise error
        return results

    def _send(self) -> None:
        """What the socket does not take now, it gets when it can."""
        if not self._is_sent():
            self._loop.add_writer(self._socket, self._send_on)

    def _send_on(self) -> None:
        if self._is_sent():
            self._loop.remove_writer(self._socket)

    def _is_sent(self) -> bool:
        try:
            return not self._libpq.flush()
        except psycopg.Error as error:
            self._lose(error)
            return True

    def _receive(self) -> None:
        """All that is there: of a link that broke uvloop tells once, also where an answer came before."""
        try:
            self._take()
            while self._input.poll(0):
                self._take()
        except psycopg.Error as error:
            self._lose(error)

    def _take(self) -> None:
        self._libpq.consume_input()
        if self._answer is not None:
            self._collect(self._answer)
        while note := self._libpq.notifies():
            if self.on_notification is not None:
                self.on_notification(note.extra.decode())

    def _collect(self, answer: "asyncio.Future[list[PGresult]]") -> None:
        """libpq tells the end of each statement's results by None."""
        ends = 0
        while ends < 2 and not self._libpq.is_busy():
            result = self._libpq.get_result()
            if result is None:
                ends += 1
            elif result.status == ExecStatus.PIPELINE_SYNC:
                results, self._results, self._answer = self._results, [], None
                if not answer.done():
                    answer.set_result(results)
                return
            else:
                ends = 0
                self._results.append(result)

    def _read(self, statement: Prepared, result: PGresult) -> Rows:
        touched = result.command_tuples or 0
        if result.status != ExecStatus.TUPLES_OK:
            return Rows((), (), touched)
        self._reader.set_pgresult(result)
        rows: list[Row] = self._reader.load_rows(0, result.ntuples, tuple)
        return Rows(statement.columns, rows, touched)

    def _heed(self, notice: PGresult) -> None:
        """A server that ends an idle session says why just before it does."""
        if notice.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) == b"FATAL":
            self._last_words = psycopg.errors.error_from_result(notice)

    def _expire(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(TimeoutError(f"no answer within {self._timeout:g} seconds"))

    def _abandon(self) -> None:
        """Nobody waits for the answer any more, so the server need not work on it."""
        if not self.closed.is_set():
            self._let_go()
            _keep(self._loop.create_task(self._give_up()))

    async def _give_up(self) -> None:
        try:
            await self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
        except psycopg.Error:
            pass  # the server is away
        finally:
            self._libpq.finish()

    def _let_go(self) -> None:
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self.closed.set()

    def _lose(self, error: psycopg.Error) -> None:
        if self.closed.is_set():
            return
        self._let_go()
        self._libpq.finish()
        self._last_words = _first_error(self._results) or self._last_words or error
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(self._last_words)


def _first_error(results: Iterable[PGresult]) -> psycopg.Error | None:
    failed = (one for one in results if one.status == ExecStatus.FATAL_ERROR)
    return next((psycopg.errors.error_from_result(one) for one in failed), None)


_leaving: set["asyncio.Task[None]"] = set()


def _keep(task: "asyncio.Task[None]") -> None:
    """The event loop itself would forget it."""
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)
