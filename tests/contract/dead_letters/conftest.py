"""A bus and a database of each profile: embedded, and PostgreSQL with RabbitMQ."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attune.bus.opening import bus_from
from attune.bus.port import Bus
from attune.kernel.clock import SystemClock
from attune.kernel.configuration import load_settings
from attune.kernel.settings import Settings
from attune.store import migrate
from attune.store.database import Database
from attune.store.opening import database_from
from tests.contract.bus.worlds import MemoryWorld, RabbitWorld
from tests.contract.dead_letters.post import Post


@pytest.fixture(params=["embedded", "production"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__MESSAGE_QUEUE__RETRY_DELAY": "0.05"}
    if request.param == "production":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("migrated_url")
        environ["ATTUNE__MESSAGE_QUEUE__URL"] = request.getfixturevalue("rabbitmq_url")
    return load_settings(environ)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    await migrate.upgrade(settings.database_url)
    database = database_from(settings, SystemClock(), random.Random(1))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def bus(settings: Settings) -> AsyncIterator[Bus]:
    bus = bus_from(settings.message_queue, SystemClock(), random.Random(1))
    await bus.start()
    yield bus
    await bus.close()


@pytest.fixture
async def post(
    request: pytest.FixtureRequest, settings: Settings, database: Database
) -> AsyncIterator[Post]:
    url = settings.message_queue.url
    world: MemoryWorld | RabbitWorld = MemoryWorld()
    if url is not None:
        world = RabbitWorld(request.getfixturevalue("rabbitmq"), url.get_secret_value())
    yield Post(world, database)
    await world.start()
    await world.close()
