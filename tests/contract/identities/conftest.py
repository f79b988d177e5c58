"""Accounts on each database, and the API over them, with a clock that stands still and cheap hashes."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI
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
from tests.contract.api.parts import api_parts
from tests.contract.identities.asgi import Caller, calls_to


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path)}
    if request.param == "postgresql":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("migrated_url")
    return load_settings(environ)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    await migrate.upgrade(settings.database_url)
    database = database_from(settings, SystemClock(), random.Random(1))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def registration() -> Registration:
    """A test that wants another one has its own fixture, or replaces it in `accounts`."""
    return Registration(is_open=True, default_permission_sets=("core.viewer",))


@pytest.fixture
def accounts(database: Database, clock: ManualClock, registration: Registration) -> Accounts:
    return Accounts(
        database=database,
        passwords=Passwords(time_cost=1, memory_kib=64),
        tokens=Tokens(SecretStr("a secret of the tests"), clock, Ids(random.Random(1))),
        clock=clock,
        registration=registration,
    )


@pytest.fixture
def app(accounts: Accounts, settings: Settings) -> FastAPI:
    bus = bus_from(settings.message_queue, SystemClock(), random.Random(1))
    return create_app(api_parts(accounts, bus, settings.data_dir / "packs"))


@pytest.fixture
def call(app: FastAPI) -> Caller:
    return calls_to(app)
