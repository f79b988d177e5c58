"""A migrated database of each kind, and an installer with a root of its own."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attune.catalog.packs import PackInstaller
from attune.kernel.clock import SystemClock
from attune.kernel.configuration import load_settings
from attune.store import migrate
from attune.store.database import Database
from attune.store.opening import database_from


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path / "data")}
    if request.param == "postgresql":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("migrated_url")
    settings = load_settings(environ)
    await migrate.upgrade(settings.database_url)
    database = database_from(settings, SystemClock(), random.Random(1))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "packs"


@pytest.fixture
def installer(database: Database, root: Path) -> PackInstaller:
    return PackInstaller(database, SystemClock(), root)
