"""What only PostgreSQL has: other processes, and conflicts between them."""

import asyncio
import random

import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.errors import DatabaseUnavailable
from attune.store.database import Database, Tx
from attune.store.postgresql import PostgreSQLDatabase
from harness.postgresql import PostgreSQL
from tests.contract.store.world import PostgreSQLWorld, add, labels


@pytest.fixture
def world(postgresql: PostgreSQL, postgresql_url: str, make_schema: None) -> PostgreSQLWorld:
    return PostgreSQLWorld(postgresql, postgresql_url)


async def test_wakes_reach_every_process(world: PostgreSQLWorld, database: Database) -> None:
    other = world.database()
    await other.open()
    heard: asyncio.Queue[str] = asyncio.Queue()
    other.listen("limits", heard.put_nowait)

    async def change(tx: Tx) -> None:
        tx.wake("limits", "system")

    await database.run(change)
    async with asyncio.timeout(10):
        while await heard.get() != "system":
            pass
    await other.close()


async def test_a_deadlock_is_tried_again_and_both_steps_happen(
    world: PostgreSQLWorld, database: Database
) -> None:
    both_hold_one = asyncio.Barrier(2)
    tries = []

    async def lock(tx: Tx, first: str, second: str) -> None:
        tries.append(first)
        touch = "UPDATE parcel SET weight = weight + 1 WHERE label = :label"
        await tx.execute(touch, label=first)
        if len(tries) <= 2:
            await both_hold_one.wait()
        await tx.execute(touch, label=second)

    async def weights(tx: Tx) -> list[int]:
        return await tx.all(int, "SELECT weight FROM parcel")

    await database.run(add, "a", "b")
    await asyncio.gather(database.run(lock, "a", "b"), database.run(lock, "b", "a"))
    assert len(tries) > 2
    assert await database.run(weights) == [2, 2]


async def test_a_read_of_one_statement_has_no_transaction_around_it(
    world: PostgreSQLWorld, database: Database
) -> None:
    """Two round trips less; that statement is a snapshot by itself."""

    async def isolations(tx: Tx, count: int) -> list[str]:
        return [
            await tx.one(str, "SELECT current_setting('transaction_isolation')")
            for _ in range(count)
        ]

    async def alone(tx: Tx) -> list[str]:
        return await isolations(tx, 1)

    for _ in range(2):
        assert await database.read(alone) == ["read committed"]
        assert await database.read(isolations, 3) == ["repeatable read"] * 3


async def test_a_read_that_goes_on_to_write_changes_nothing(
    world: PostgreSQLWorld, database: Database
) -> None:
    async def look_and_add(tx: Tx) -> None:
        await labels(tx)
        await add(tx, "b")

    for _ in range(2):
        with pytest.raises(Exception, match=r"read.?only"):
            await database.read(look_and_add)
    assert await database.read(labels) == []


async def test_a_read_has_one_snapshot(world: PostgreSQLWorld, database: Database) -> None:
    looked_once, changed = asyncio.Event(), asyncio.Event()

    async def look_twice(tx: Tx) -> tuple[list[str], list[str]]:
        before = await labels(tx)
        looked_once.set()
        await changed.wait()
        return before, await labels(tx)

    changed.set()
    assert await database.read(look_twice) == ([], [])  # from now on it is known to look twice
    looked_once.clear()
    changed.clear()
    await database.run(add, "a")
    reading = asyncio.create_task(database.read(look_twice))
    await looked_once.wait()
    await database.run(add, "b")
    changed.set()
    assert await reading == (["a"], ["a"])


async def test_a_pool_that_is_used_up_is_told_with_its_size(
    postgresql: PostgreSQL, postgresql_url: str
) -> None:
    database = PostgreSQLDatabase(
        postgresql_url, SystemClock(), random.Random(1), max_connections=1, connect_timeout=0.2
    )
    await database.open()
    holding, done = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> None:
        holding.set()
        await done.wait()

    async def ask(tx: Tx) -> int:
        return await tx.one(int, "SELECT 1")

    holder = asyncio.create_task(database.run(hold))
    await holding.wait()
    with pytest.raises(DatabaseUnavailable, match=r"max_connections: 1\)"):
        await database.run(ask)
    done.set()
    await holder
    assert await database.run(ask) == 1
    await database.close()
