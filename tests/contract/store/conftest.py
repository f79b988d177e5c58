import asyncio
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from attune.store.database import Database, Tx
from attune.store.schema import SCHEMA
from tests.contract.store.world import PostgreSQLWorld, SQLiteWorld, World


@pytest.fixture
def make_schema(postgresql_url: str) -> None:
    async def create() -> None:
        connection = await asyncpg.connect(postgresql_url)
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        await connection.close()

    asyncio.run(create())


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "sqlite":
        yield SQLiteWorld(request.getfixturevalue("tmp_path"))
        return
    request.getfixturevalue("make_schema")
    there = PostgreSQLWorld(
        request.getfixturevalue("postgresql"), request.getfixturevalue("postgresql_url")
    )
    yield there
    there.proxy.close()


@pytest.fixture
async def database(world: World) -> AsyncIterator[Database]:
    database = world.database()
    await database.open()

    async def create(tx: Tx) -> None:
        await tx.execute(world.ddl())

    await database.run(create)
    yield database
    await database.close()
