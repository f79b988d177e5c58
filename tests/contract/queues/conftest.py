"""`world` runs a test once on each adapter; `redis_world` is for what only Redis can suffer."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attune.kernel.configuration import load_settings
from attune.kernel.settings import Settings
from attune.store import migrate
from harness.postgresql import PostgreSQL
from harness.redis import Redis
from tests.contract.queues.worlds import RedisWorld, World


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with the schema. Copying it is faster than migrating each test's own."""
    path = tmp_path_factory.mktemp("migrated") / "attune.db"
    with ThreadPoolExecutor(1) as apart:  # the test that asks first may have a loop of its own
        apart.submit(lambda: asyncio.run(migrate.upgrade(f"sqlite:///{path}"))).result()
    return path


@pytest.fixture
def embedded(migrated_file: Path, tmp_path: Path) -> Settings:
    shutil.copy(migrated_file, tmp_path / "attune.db")
    return load_settings({"ATTUNE__DATA_DIR": str(tmp_path)})


@pytest.fixture(scope="session")
def database_url(postgresql: PostgreSQL, migrated_template: str) -> str:
    """One for all tests here: each finds its tables empty, which is faster than a database of its own."""
    return postgresql.create_database(like=migrated_template)


@pytest.fixture(params=["redis", "sqlite", "postgresql"])
def closed_world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    match request.param:
        case "redis":
            url = request.getfixturevalue("redis_url")
            return RedisWorld(request.getfixturevalue("embedded"), url)
        case "sqlite":
            return World(request.getfixturevalue("embedded"))
    url = request.getfixturevalue("database_url")
    environ = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": url}
    return World(load_settings(environ))


@pytest.fixture
async def world(closed_world: World) -> AsyncIterator[World]:
    async with closed_world as world:
        await world.clear()
        yield world


@pytest.fixture
async def redis_world(
    redis_server: Redis, redis_url: str, embedded: Settings
) -> AsyncIterator[RedisWorld]:
    async with RedisWorld(embedded, redis_url) as world:
        yield world
        redis_server.ensure_running()
