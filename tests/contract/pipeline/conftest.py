"""Each test of the pipeline runs on both profiles: embedded, and PostgreSQL with RabbitMQ."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attune.kernel.configuration import load_settings
from attune.kernel.settings import Settings
from harness.postgresql import PostgreSQL
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.proofs import prove
from tests.contract.pipeline.world import World


@pytest.fixture(params=["embedded", "servers"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path)}
    if request.param == "servers":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("migrated_url")
        environ["ATTUNE__MESSAGE_QUEUE__URL"] = request.getfixturevalue("rabbitmq_url")
    return load_settings(environ)


@pytest.fixture
async def world(settings: Settings) -> AsyncIterator[World]:
    """With an executor and a worker of ten slots; the stages share a process."""
    async with World(settings) as world:
        await world.start_worker()
        await world.start_executor()
        yield world


@pytest.fixture
async def apart(settings: Settings) -> AsyncIterator[World]:
    """As separate processes have it: what is accepted goes on only because a message hurries somebody."""
    async with World(settings, through=False) as world:
        await world.start_worker()
        await world.start_executor()
        yield world


@pytest.fixture
async def still(settings: Settings) -> AsyncIterator[World]:
    """Without executor and worker: what is accepted stays where it is."""
    async with World(settings) as world:
        yield world


@pytest.fixture(scope="session")
def bench_url(postgresql: PostgreSQL, migrated_template: str) -> str:
    """One database for all benches, each of which begins by emptying it: a copy for each would cost most of the time."""
    postgresql.ensure_running()
    return postgresql.create_database(like=migrated_template)


@pytest.fixture(params=["sqlite", "postgresql"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    """Time and the worker are the test's. At the end the decision log must prove order and limits."""
    environ = {"ATTUNE__DATA_DIR": str(tmp_path)}
    if request.param == "postgresql":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("bench_url")
    async with Bench(load_settings(environ)) as bench:
        yield bench
        await prove(bench)


@pytest.fixture
async def proved(settings: Settings) -> AsyncIterator[World]:
    """As `world`, with a decision log that must prove order and limits at the end."""
    async with World(settings) as world:
        await world.start_worker()
        await world.start_executor()
        yield world
        await prove(world)
