"""PostgreSQL: a step runs on a pooled connection, in the schema `attune`.

Steps lock rows themselves, in the one order that design gives (lanes, workers, executions, each by id),
so the isolation level is the server's default; a read-only step gets one snapshot. A statement by itself is one, so a
read-only step runs without a transaction until it asks for a second.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, ParamSpec, TypeVar

import sqlalchemy as sa

from attune.kernel.clock import Clock
from attune.kernel.errors import DatabaseUnavailable
from attune.kernel.urls import masked
from attune.store.database import Database, Step
from attune.store.id_reserve import IdReserve
from attune.store.notifications import NotificationListener
from attune.store.postgresql_connect import connect
from attune.store.postgresql_errors import DRIVER_ERRORS, translated
from attune.store.postgresql_pool import SessionPool
from attune.store.postgresql_session import Call, Session
from attune.store.postgresql_tx import READ_ONLY, PostgreSQLTx, SingleStatementTx, SnapshotNeeded
from attune.store.schema import SCHEMA

T = TypeVar("T")
P = ParamSpec("P")

_DEAD_ROWS: Final = "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = to_regclass($1)"
# Whoever is at it already does the same. Indexes are what it is about; to give pages back would lock everybody out.
_VACUUM: Final = "VACUUM (SKIP_LOCKED, INDEX_CLEANUP on, TRUNCATE off) {table}"


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
        self._pool: SessionPool | None = None
        self._ids = IdReserve()
        self._in_need_of_snapshots: set[str] = set()
        self._hears_wakes = hears_wakes
        self._notifications = NotificationListener(self._connect, self._deliver, self.topics, clock)

    async def open(self) -> None:
        pool = SessionPool(self._connect, self._max_connections, self._connect_timeout, self._clock)
        pool.give_back(await self._taken(pool))
        self._pool = pool
        if self._hears_wakes:
            await self._notifications.start()

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        await self._notifications.stop()
        if pool is not None:
            await pool.close()

    async def tidy(self, table: sa.Table, at_least: int) -> int | None:
        async with self._session() as session:
            try:
                if await _dead_rows(session, table) < at_least:
                    return None
                await session.ask(Call(_VACUUM.format(table=table.name)))
                return await _dead_rows(session, table)
            except DRIVER_ERRORS as error:
                raise translated(error, self._server) or error from error

    async def _run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._session() as session:
            tx = PostgreSQLTx(session, self._server, self._ids)
            try:
                result = await step(tx, *args, **kwargs)
                await tx.commit()
            except BaseException:
                await tx.roll_back()
                raise
        tx.keep_ids()
        for effect in tx.effects:
            effect()
        return result

    async def _read(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if step.__qualname__ not in self._in_need_of_snapshots:
            try:
                async with self._session() as session:
                    tx = SingleStatementTx(session, self._server, self._ids)
                    return await step(tx, *args, **kwargs)
            except SnapshotNeeded:
                self._in_need_of_snapshots.add(step.__qualname__)
        return await self._read_on_snapshot(step, *args, **kwargs)

    async def _read_on_snapshot(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._session() as session:
            tx = PostgreSQLTx(session, self._server, self._ids, begin=READ_ONLY)
            try:
                return await step(tx, *args, **kwargs)
            finally:
                await tx.roll_back()

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Session]:
        """Given back whatever happens meanwhile, also while a transaction is rolled back."""
        pool = self._pool
        if pool is None:
            raise DatabaseUnavailable("The PostgreSQL database is closed.")
        session = await self._taken(pool)
        try:
            yield session
        finally:
            pool.give_back(session)

    async def _taken(self, pool: SessionPool) -> Session:
        try:
            return await pool.take()
        except TimeoutError as error:
            raise DatabaseUnavailable(
                f"No connection to PostgreSQL at {self._server} was free or could be made within"
                f" {self._connect_timeout:g} seconds (database.max_connections:"
                f" {self._max_connections}).",
                server=self._server,
            ) from error
        except DRIVER_ERRORS as error:
            raise translated(error, self._server) or error from error

    async def _connect(self) -> Session:
        return await connect(
            self._url, timeout=self._connect_timeout, command_timeout=self._command_timeout
        )


async def _dead_rows(session: Session, table: sa.Table) -> int:
    [told] = await session.ask(Call(_DEAD_ROWS, [f"{SCHEMA}.{table.name}"]))
    return int(told.rows[0][0]) if told.rows else 0
