"""Brings a database to the schema of this version, and tells whether it is there.

Several processes may try at once: on PostgreSQL the first one works and the others wait for it; an SQLite
file has one owner anyway.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from attune.kernel.errors import SchemaMismatch
from attune.kernel.urls import DatabaseKind, database_kind, masked, sqlite_path
from attune.store.postgresql_errors import translated
from attune.store.schema import SCHEMA

T = TypeVar("T")

_LOCK: Final = 0x4154_5455_4E45  # any number, as long as every version uses the same


async def upgrade(url: str) -> str:
    """Apply what is missing; the revision that the database has then."""
    return await _with_connection(url, _upgrade)


async def check(url: str) -> None:
    """Raise `SchemaMismatch` unless the database has exactly this version's schema."""
    present = await _with_connection(url, _current)
    expected = _scripts().get_current_head()
    if present != expected:
        raise SchemaMismatch(
            f"The database has schema {present or 'none'}, this version needs {expected}:"
            " run `attune db upgrade` (or install the version that made it).",
            present=present,
            expected=expected,
        )


def _upgrade(connection: sa.Connection) -> str:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
        connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        connection.commit()
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.commit()
    return _current(connection) or ""


def _current(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


async def _with_connection(url: str, work: Callable[[sa.Connection], T]) -> T:
    match database_kind(url):
        case DatabaseKind.SQLITE:
            return _on_sqlite(url, work)
        case DatabaseKind.POSTGRESQL:
            return await _on_postgresql(url, work)


def _on_sqlite(url: str, work: Callable[[sa.Connection], T]) -> T:
    path = sqlite_path(url)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=NullPool)
    _begin_for_real(engine)
    try:
        with engine.connect() as connection:
            return work(connection)
    finally:
        engine.dispose()


def _begin_for_real(engine: sa.Engine) -> None:
    """Python's sqlite3 begins no transaction before a CREATE: a migration that fails would stay half done."""

    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def _(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


async def _on_postgresql(url: str, work: Callable[[sa.Connection], T]) -> T:
    async def connect() -> psycopg.AsyncConnection[Any]:
        options = f"-c search_path={SCHEMA}"
        return await psycopg.AsyncConnection.connect(url, options=options, connect_timeout=10)

    engine = create_async_engine("postgresql+psycopg://", async_creator=connect, poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(work)
    except sa.exc.DBAPIError as error:
        raise translated(error.orig or error, masked(url)) or error from error
    finally:
        await engine.dispose()
