"""What deleted rows leave behind is taken away before it gets in the way."""

import asyncio
import json
from pathlib import Path

import asyncpg
import pytest

from attune.store.database import Database, Tx
from harness.postgresql import PostgreSQL
from tests.contract.store.world import PostgreSQLWorld, SQLiteWorld, add, labels, parcel

MANY = 5000


async def go(tx: Tx) -> None:
    await tx.execute("DELETE FROM parcel WHERE label LIKE 'gone%'")


async def tell(tx: Tx) -> None:
    """The server would tell of dead rows a little later by itself, as it does before PostgreSQL 15."""
    await tx.execute("""
        DO $$ BEGIN
            IF current_setting('server_version_num')::int >= 150000 THEN
                PERFORM pg_stat_force_next_flush();
            END IF;
        END $$
    """)


async def pages_to_the_first(tx: Tx) -> int:
    text = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT id FROM parcel ORDER BY id LIMIT 1"
    [found] = await tx.all(str, text)
    plan = json.loads(found)[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


async def leave_behind(database: Database) -> None:
    await database.run(add, *(f"gone {number}" for number in range(MANY)))
    await database.run(go)
    await database.run(tell)


@pytest.fixture
def world(postgresql: PostgreSQL, postgresql_url: str, make_schema: None) -> PostgreSQLWorld:
    return PostgreSQLWorld(postgresql, postgresql_url)


async def until_told(database: Database) -> int:
    """What stayed, once the server knows that there is something."""
    async with asyncio.timeout(30):
        while (stayed := await database.tidy(parcel, MANY)) is None:
            await asyncio.sleep(0.05)
    return stayed


async def test_whoever_looks_for_the_first_passes_none_that_left(database: Database) -> None:
    await leave_behind(database)
    await database.run(add, "here")
    before = await database.run(pages_to_the_first)
    assert await until_told(database) == 0
    assert await database.run(pages_to_the_first) < before / 2
    assert await database.run(labels) == ["here"]


async def test_few_are_left_to_the_server(database: Database) -> None:
    await leave_behind(database)
    assert await database.tidy(parcel, 10 * MANY) is None


async def test_what_somebody_may_still_read_stays(
    world: PostgreSQLWorld, database: Database
) -> None:
    reader = await asyncpg.connect(world.url)
    async with reader.transaction(isolation="repeatable_read"):
        await reader.fetch("SELECT 1")
        await leave_behind(database)
        assert await until_told(database) >= MANY
    await reader.close()
    assert await until_told(database) == 0


async def test_where_rows_go_at_once_there_is_nothing_to_do(tmp_path: Path) -> None:
    database = SQLiteWorld(tmp_path).database()
    await database.open()
    assert await database.tidy(parcel, 0) is None
    await database.close()
