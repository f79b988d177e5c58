"""The tables of `schema.py` and the sum of the migrations are the same thing, on both databases."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as postgresql_dialect

from attune.kernel.errors import SchemaMismatch
from attune.store import migrate
from attune.store.schema import SCHEMA, VIEWS, metadata
from harness.postgresql import PostgreSQL

DESCRIPTION = """
    SELECT 'column', table_name, column_name, data_type, column_default, is_nullable, is_identity,
           collation_name
      FROM information_schema.columns WHERE table_schema = 'attune'
    UNION ALL
    SELECT 'index', tablename, indexname, indexdef, NULL, NULL, NULL, NULL
      FROM pg_indexes WHERE schemaname = 'attune'
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL, NULL
      FROM pg_constraint WHERE connamespace = 'attune'::regnamespace
    UNION ALL
    SELECT 'options', relname, array_to_string(reloptions, ','), NULL, NULL, NULL, NULL, NULL
      FROM pg_class WHERE relnamespace = 'attune'::regnamespace AND relkind = 'r'
"""


async def described(url: str) -> set[tuple[Any, ...]]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(DESCRIPTION)
    await connection.close()
    return {tuple(row) for row in rows if not str(row[1]).endswith("alembic_version")}


def statements(metadata: sa.MetaData) -> list[str]:
    dialect = postgresql_dialect.dialect()  # type: ignore[no-untyped-call]
    found = []
    for table in metadata.sorted_tables:
        found.append(str(sa.schema.CreateTable(table).compile(dialect=dialect)))
        found += [str(sa.schema.CreateIndex(i).compile(dialect=dialect)) for i in table.indexes]
    return found


async def test_the_tables_are_the_sum_of_the_migrations_on_postgresql(
    postgresql: PostgreSQL, postgresql_url: str
) -> None:
    await migrate.upgrade(postgresql_url)
    declared = postgresql.create_database()
    connection = await asyncpg.connect(declared, server_settings={"search_path": SCHEMA})
    await connection.execute(f"CREATE SCHEMA {SCHEMA}")
    for statement in [*statements(metadata), *VIEWS]:
        await connection.execute(statement)
    await connection.close()
    migrated = await described(postgresql_url)
    assert migrated == await described(declared)
    assert any(row[0] == "index" for row in migrated)
    postgresql.drop_database(declared)


def tables_in(file: Path) -> dict[str, str]:
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {
            name: " ".join(sql.replace("\t", " ").replace('"', "").split())
            for name, sql in rows
            if name != "alembic_version"
        }


async def test_the_tables_are_the_sum_of_the_migrations_on_sqlite(tmp_path: Path) -> None:
    migrated, declared = tmp_path / "migrated.db", tmp_path / "declared.db"
    await migrate.upgrade(f"sqlite:///{migrated}")
    metadata.create_all(sa.create_engine(f"sqlite:///{declared}"))
    assert tables_in(migrated) == tables_in(declared)
    assert "dead_letter" in tables_in(migrated)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'attune.db'}"
    return str(request.getfixturevalue("postgresql_url"))


async def test_upgrading_twice_changes_nothing_and_the_check_agrees(url: str) -> None:
    first = await migrate.upgrade(url)
    assert await migrate.upgrade(url) == first
    await migrate.check(url)


async def test_a_database_without_the_schema_is_refused_with_what_to_do(url: str) -> None:
    with pytest.raises(SchemaMismatch, match="has schema none.*attune db upgrade"):
        await migrate.check(url)


async def test_several_upgrade_at_once(postgresql_url: str) -> None:
    revisions = await asyncio.gather(*(migrate.upgrade(postgresql_url) for _ in range(5)))
    assert len(set(revisions)) == 1
    await migrate.check(postgresql_url)


async def test_a_migration_that_fails_leaves_nothing_behind(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(op, "create_index", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        await migrate.upgrade(url)
    monkeypatch.undo()
    await migrate.upgrade(url)
    await migrate.check(url)
