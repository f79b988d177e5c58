"""The database goes away and comes back: a clear error meanwhile, and work goes on by itself."""

import asyncio
import random
from pathlib import Path

import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.errors import AttuneError, DatabaseInUse, DatabaseUnavailable
from attune.store.database import Database, Tx
from attune.store.postgresql import PostgreSQLDatabase
from harness.postgresql import PostgreSQL
from tests.contract.store.world import PostgreSQLWorld, SQLiteWorld, World, add, labels


async def until_it_works(database: Database, *names: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await database.run(add, *names)
                return
            except AttuneError as error:
                assert error.retriable, error


async def test_f31_a_database_that_is_away_gives_a_clear_error_and_work_goes_on_after(
    world: World, database: Database
) -> None:
    await database.run(add, "before")
    await world.go_away()
    with pytest.raises(AttuneError) as away:
        await database.run(add, "during")
    assert away.value.retriable
    assert away.value.code in {"database_unavailable", "contention"}
    await world.come_back()
    await until_it_works(database, "after")
    assert await database.read(labels) == ["before", "after"]


async def test_f31_what_was_committed_survives_a_crash_and_the_next_step_works(
    world: World, database: Database
) -> None:
    await database.run(add, "before")
    database = await world.crash_and_restart(database)
    try:
        await until_it_works(database, "after")
        assert await database.read(labels) == ["before", "after"]
    finally:
        await database.close()


async def test_what_was_acknowledged_before_a_crash_is_there_after_it(
    world: World, database: Database
) -> None:
    acknowledged: list[str] = []

    async def write(n: int) -> None:
        for m in range(1_000):
            label = f"{n}/{m}"
            try:
                await database.run(add, label)
            except AttuneError:
                return
            acknowledged.append(label)

    writers = [asyncio.create_task(write(n)) for n in range(4)]
    async with asyncio.timeout(30):
        while len(acknowledged) < 50:
            await asyncio.sleep(0.005)
    survivor = await world.crash_and_restart(database)
    try:
        await asyncio.gather(*writers)
        await until_it_works(survivor, "after")
        assert set(acknowledged) <= set(await survivor.read(labels))
    finally:
        await survivor.close()


async def test_listeners_hear_again_after_the_connection_was_lost(
    world: World, database: Database
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    database.listen("settings", heard.put_nowait)

    async def change(tx: Tx) -> None:
        tx.wake("settings", "limit")

    await world.go_away()
    await world.come_back()
    async with asyncio.timeout(30):
        while True:
            await until_it_works(database, f"try {heard.qsize()} {id(object())}")
            await database.run(change)
            try:
                async with asyncio.timeout(1):
                    while await heard.get() != "limit":
                        pass
                return
            except TimeoutError:
                continue


async def test_a_black_hole_is_found_out_within_the_command_s_time(
    postgresql: PostgreSQL, postgresql_url: str
) -> None:
    world = PostgreSQLWorld(postgresql, postgresql_url)
    database = world.database()
    await database.open()

    async def ask(tx: Tx) -> int:
        return await tx.one(int, "SELECT 1")

    assert await database.run(ask) == 1
    await asyncio.to_thread(world.proxy.stall)
    with pytest.raises(DatabaseUnavailable):
        await database.run(ask)
    await asyncio.to_thread(world.proxy.heal)
    async with asyncio.timeout(30):
        while True:
            try:
                assert await database.run(ask) == 1
                break
            except DatabaseUnavailable:
                continue
    await database.close()
    world.proxy.close()


async def test_more_steps_than_connections_wait_their_turn(database: Database) -> None:
    await asyncio.gather(*(database.run(add, f"n{n}") for n in range(300)))
    assert len(await database.read(labels)) == 300


async def test_a_database_that_does_not_exist_is_told_without_the_password(
    postgresql: PostgreSQL,
) -> None:
    url = f"postgresql://postgres:sesame@127.0.0.1:{postgresql.port}/missing"
    database = PostgreSQLDatabase(url, SystemClock(), random.Random(1), connect_timeout=2)
    with pytest.raises(DatabaseUnavailable, match="missing") as error:
        await database.open()
    assert "sesame" not in str(error.value)
    assert "sesame" not in repr(error.value.fields)


async def test_an_sqlite_file_has_one_owner(tmp_path: Path) -> None:
    world = SQLiteWorld(tmp_path)
    first, second = world.database(), world.database()
    await first.open()
    with pytest.raises(DatabaseInUse, match=r"in use by process \d+.*PostgreSQL"):
        await second.open()
    await first.close()
    await second.open()
    await second.close()
