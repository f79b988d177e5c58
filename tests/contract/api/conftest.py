"""The API over each database, with the core pack loaded."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from attune.api.app import create_app
from attune.bus.opening import bus_from
from attune.identities.accounts import Accounts, Registration
from attune.identities.passwords import Passwords
from attune.identities.tokens import Tokens
from attune.kernel.clock import SystemClock
from attune.kernel.configuration import load_settings
from attune.kernel.ids import Ids
from attune.kernel.settings import Settings
from attune.simulation.clock import ManualClock
from attune.store import migrate
from attune.store.database import Database
from attune.store.opening import database_from
from tests.contract.api.asgi import Client
from tests.contract.api.parts import api_parts
from tests.contract.api.plant import Plant
from tests.contract.api.world import Told, World
from tests.contract.catalog.world import load_core


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path / "data")}
    if request.param == "postgresql":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("migrated_url")
    return load_settings(environ)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    await migrate.upgrade(settings.database_url)
    database = database_from(settings, SystemClock(), random.Random(1))
    await database.open()
    await load_core(database)
    yield database
    await database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where installed packs are kept."""
    return tmp_path / "packs"


@pytest.fixture
def world(database: Database, settings: Settings, clock: ManualClock, root: Path) -> World:
    accounts = Accounts(
        database=database,
        passwords=Passwords(time_cost=1, memory_kib=64),
        tokens=Tokens(SecretStr("a secret of the tests"), clock, Ids(random.Random(1))),
        clock=clock,
        registration=Registration(is_open=True),
    )
    bus = bus_from(settings.message_queue, SystemClock(), random.Random(1))
    told = Told()
    return World(create_app(api_parts(accounts, bus, root, told)), accounts, told)


@pytest.fixture
async def admin(world: World) -> Client:
    return await world.client("admin", "core.admin")


@pytest.fixture
async def plant(settings: Settings) -> AsyncIterator[Plant]:
    """With an executor and a worker of ten slots, in real time."""
    async with Plant(settings) as plant:
        await plant.start_worker()
        await plant.start_executor()
        yield plant
        await plant.feed.stop()


@pytest.fixture
async def quiet(settings: Settings) -> AsyncIterator[Plant]:
    """Nobody runs anything: what is accepted stays where it is."""
    async with Plant(settings, through=False) as plant:
        yield plant
        await plant.feed.stop()


@pytest.fixture
async def operator(plant: Plant) -> Client:
    return await plant.client("operator", "core.admin")


@pytest.fixture
async def watcher(quiet: Plant) -> Client:
    return await quiet.client("watcher", "core.admin")
