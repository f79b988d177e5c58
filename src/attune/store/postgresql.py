"""PostgreSQL: a step runs on a pooled connection, in the schema `attune`.

Steps lock rows themselves, in the one order that design gives (lanes, workers, executions, each by id),
so the isolation level is the server's default; a read-only step gets one snapshot. A statement by itself is one, so a
read-only step runs without a transaction until it asks for a second.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, ParamSpec, TypeVar

import asyncpg

from attune.kernel.clock import Clock
from attune.kernel.errors import AttuneError, DatabaseUnavailable
from attune.kernel.urls import masked
from attune.store.database import Database, Step
from attune.store.id_reserve import IdReserve
from attune.store.notifications import NotificationListener
from attune.store.postgresql_errors import DRIVER_ERRORS, translated
from attune.store.postgresql_tx import PostgreSQLTx, SingleStatementTx, SnapshotNeeded
from attune.store.schema import SCHEMA
from attune.store.values import json_text

T = TypeVar("T")
P = ParamSpec("P")

_CACHED_STATEMENTS: Final = 1024
# Our statements read few rows through an index that has their order. The statistics of small tables that change all
# the time are never right, and a planner that believes them reads and sorts a whole backlog to take ten rows of it, or a
# table that was small when the plan was made.
_PLANNING: Final = {
    "enable_bitmapscan": "off",
    "enable_seqscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}
# A step awaits nothing but its transaction, so one that is idle was left by a process that is stopped, or cut off without
# a word: its locks must not hold up all others until it is back. Whoever waits for a lock gives up before that and tries
# again, so that of such a process nothing is left in the line when the lock is free at last.
_LEFT_BEHIND: Final = {"idle_in_transaction_session_timeout": "5s", "lock_timeout": "4s"}


class PostgreSQLDatabase(Database):
    """`hears_wakes` costs a connection, which nobody needs who listens to nothing."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        source: random.Random,
        *,
        max_connections: int = 20,
        connect_timeout: float = 10,
        command_timeout: float = 60,
        hears_wakes: bool = True,
    ) -> None:
        super().__init__(clock, source)
        self._url = url
        self._server = masked(url)
        self._max_connections = max_connections
        self._connect_timeout = connect_timeout
        self._command_timeout = command_timeout
        self._pool: asyncpg.Pool | None = None
        self._ids = IdReserve()
        self._in_need_of_snapshots: set[str] = set()
        self._hears_wakes = hears_wakes
        self._notifications = NotificationListener(self._connect, self._deliver, self.topics, clock)

    async def open(self) -> None:
        try:
            self._pool = await asyncpg.create_pool(
                connect=self._connect_for_pool,
                min_size=1,
                max_size=self._max_connections,
                reset=_keep_session,
            )
        except DRIVER_ERRORS as error:
            raise translated(error, self._server) or error from error
        if self._hears_wakes:
            await self._notifications.start()

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        await self._notifications.stop()
        if pool is not None:
            await pool.close()

    async def _run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._connection() as connection:
            tx = PostgreSQLTx(connection, self._server, self._ids)
            async with connection.transaction():
                result = await step(tx, *args, **kwargs)
                await tx.finish()
        tx.keep_ids()
        for effect in tx.effects:
            effect()
        return result

    async def _read(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if step.__qualname__ not in self._in_need_of_snapshots:
            try:
                async with self._connection() as connection:
                    tx = SingleStatementTx(connection, self._server, self._ids)
                    return await step(tx, *args, **kwargs)
            except SnapshotNeeded:
                self._in_need_of_snapshots.add(step.__qualname__)
        return await self._read_on_snapshot(step, *args, **kwargs)

    async def _read_on_snapshot(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with (
            self._connection() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await step(PostgreSQLTx(connection, self._server, self._ids), *args, **kwargs)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        if self._pool is None:
            raise DatabaseUnavailable("The PostgreSQL database is closed.")
        pool = self._pool
        connection = await self._acquire(pool)
        try:
            try:
                yield connection
            finally:
                await pool.release(connection)
        except DRIVER_ERRORS as error:
            raise _first_cause(error, self._server) from error

    async def _acquire(self, pool: asyncpg.Pool) -> asyncpg.Connection:
        try:
            return await pool.acquire(timeout=self._connect_timeout)
        except TimeoutError as error:
            raise DatabaseUnavailable(
                f"No connection to PostgreSQL at {self._server} was free or could be made within"
                f" {self._connect_timeout:g} seconds (database.max_connections:"
                f" {self._max_connections}).",
                server=self._server,
            ) from error
        except DRIVER_ERRORS as error:
            raise translated(error, self._server) or error from error

    async def _connect_for_pool(self, *_: Any, **options: Any) -> asyncpg.Connection:
        """The pool asks for its own kinds of connection; ours otherwise."""
        return await self._connect(**options)

    async def _connect(self, **options: Any) -> asyncpg.Connection:
        connection = await asyncpg.connect(
            self._url,
            timeout=self._connect_timeout,
            command_timeout=self._command_timeout,
            statement_cache_size=_CACHED_STATEMENTS,
            server_settings={
                **_PLANNING,
                **_LEFT_BEHIND,
                "search_path": SCHEMA,
                "application_name": "attune",
            },
            **options,
        )
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=json_text, decoder=str
        )
        return connection


def _first_cause(error: Exception, server: str) -> Exception:
    """A rollback over a broken connection fails as well, and says less than what broke it."""
    cause = error.__context__
    if isinstance(cause, AttuneError):
        return cause
    return translated(error, server) or error


async def _keep_session(_: asyncpg.Connection) -> None:
    """Steps change nothing about their session, so giving a connection back needs no word to the server."""
