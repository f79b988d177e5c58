"""The quick look at a database's schema agrees with the migrations themselves."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from attune.kernel.clock import SystemClock
from attune.kernel.errors import SchemaMismatch
from attune.kernel.settings import DatabaseSettings, Settings
from attune.services.connections import DatabasePart
from attune.services.schema_check import MIGRATIONS, has_this_schema, newest_revision
from attune.store import migrate
from attune.store.database import Database, Tx
from attune.store.opening import database_from


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'attune.db'}"
    found: str = request.getfixturevalue("postgresql_url")
    return found


@pytest.fixture
def without_migrations() -> Iterator[None]:
    """As in a process that has not loaded them: whoever asks for them fails."""
    name = "attune.store.migrate"
    kept = sys.modules[name]
    sys.modules[name] = None  # type: ignore[assignment]
    yield
    sys.modules[name] = kept


def database_at(url: str) -> Database:
    settings = Settings.model_validate({"database": {"url": url}})
    assert isinstance(settings.database, DatabaseSettings)
    return database_from(settings, SystemClock(), random.Random(1))


def part_at(url: str, *, upgrade: bool = False) -> DatabasePart:
    return DatabasePart(database_at(url), url, SystemClock(), upgrade=upgrade)


def test_the_newest_file_is_the_head_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS.parent))
    scripts = ScriptDirectory.from_config(config)
    assert newest_revision() == scripts.get_current_head()
    for script in scripts.walk_revisions():
        assert Path(script.path).name.startswith(f"{script.revision}_")
        assert len(script.revision) == len(newest_revision())


async def test_only_a_database_of_this_schema_has_it(url: str) -> None:
    database = database_at(url)
    await database.open()
    assert not await has_this_schema(database)
    await migrate.upgrade(url)
    assert await has_this_schema(database)
    await database.run(_pretend, "0001")
    assert not await has_this_schema(database)
    await database.close()


async def test_a_process_starts_on_a_finished_schema_without_the_migrations(
    url: str, without_migrations: None
) -> None:
    await migrate.upgrade(url)
    part = part_at(url)
    await part.start()
    await part.stop()


async def test_a_process_still_refuses_another_versions_schema(url: str) -> None:
    await migrate.upgrade(url)
    database = database_at(url)
    await database.open()
    await database.run(_pretend, "0001")
    await database.close()
    part = part_at(url)
    with pytest.raises(SchemaMismatch, match="has schema 0001, this version needs"):
        await part.start()
    await part.stop()


async def test_the_owner_of_an_empty_database_makes_its_schema(url: str) -> None:
    part = part_at(url, upgrade=True)
    await part.start()
    await part.stop()
    await migrate.check(url)


async def _pretend(tx: Tx, revision: str) -> None:
    await tx.execute("UPDATE alembic_version SET version_num = :revision", revision=revision)
