"""A process is cut off in the middle of its transactions, without a word: its locks hold nobody up for long."""

import asyncio
import random
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.errors import DatabaseUnavailable
from attune.store.database import Database, Tx
from attune.store.postgresql import PostgreSQLDatabase
from tests.contract.store.world import PostgreSQLWorld, add

WAITERS = 5
# Seconds. Where each of those who wait held the lock for its five seconds, one after the other, it would be thirty.
BOUND = 20.0

pytestmark = pytest.mark.parametrize("world", ["postgresql"], indirect=True)


@pytest.fixture
async def other(world: PostgreSQLWorld, database: Database) -> AsyncIterator[Database]:
    """Another process, whose own way to the server stays well."""
    found = PostgreSQLDatabase(world.url, SystemClock(), random.Random(2))
    await found.open()
    yield found
    await found.close()


async def weigh(tx: Tx, weight: int) -> None:
    await tx.execute("UPDATE parcel SET weight = :weight", weight=weight)


async def weight(tx: Tx) -> int:
    return await tx.one(int, "SELECT weight FROM parcel")


async def waiting(tx: Tx) -> int:
    return await tx.one(
        int,
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()",
    )


async def test_the_locks_of_one_that_is_cut_off_are_free_within_seconds(
    world: PostgreSQLWorld, database: Database, other: Database
) -> None:
    """Also where more of its transactions stand in line for the same lock."""
    await database.run(add, "parcel")
    locked, stalled = asyncio.Event(), asyncio.Event()

    async def begin(tx: Tx) -> None:
        await weigh(tx, 1)
        locked.set()
        await stalled.wait()
        await weigh(tx, 2)

    steps = [asyncio.create_task(database.run(begin))]
    await locked.wait()
    steps += [asyncio.create_task(database.run(weigh, 3)) for _ in range(WAITERS)]
    async with asyncio.timeout(BOUND):
        while await other.read(waiting) < WAITERS:
            await asyncio.sleep(0.01)
    await asyncio.to_thread(world.proxy.stall)
    stalled.set()
    async with asyncio.timeout(BOUND):
        await other.run(weigh, 4)
    await asyncio.to_thread(world.proxy.heal)
    ends = await asyncio.gather(*steps, return_exceptions=True)
    assert isinstance(ends[0], DatabaseUnavailable), ends
    assert all(end is None or isinstance(end, DatabaseUnavailable) for end in ends), ends
    assert await other.read(weight) in (3, 4)


async def test_who_waits_for_long_for_one_that_works_gets_the_lock_in_the_end(
    world: PostgreSQLWorld, database: Database, other: Database
) -> None:
    """A wait that is given up is tried again: here for longer than one may last."""
    await database.run(add, "parcel")
    locked = asyncio.Event()

    async def work(tx: Tx) -> None:
        for _ in range(6):
            await weigh(tx, 1)
            locked.set()
            await tx.execute("SELECT pg_sleep(1)")

    working = asyncio.create_task(database.run(work))
    await locked.wait()
    await other.run(weigh, 5)
    await working
    assert await other.read(weight) == 5


@pytest.mark.parametrize("way", ["run", "read"])
async def test_a_process_that_stood_still_begins_its_step_again(
    world: PostgreSQLWorld, database: Database, way: str
) -> None:
    """The server gave its session up meanwhile, so nothing of the step has happened."""
    sessions: list[int] = []

    async def stand_still(tx: Tx) -> int:
        if not sessions:
            await tx.execute("SET LOCAL idle_in_transaction_session_timeout = '200ms'")
        sessions.append(await tx.one(int, "SELECT pg_backend_pid()"))
        if len(sessions) == 1:
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(asyncio.run, gone(world.url, sessions[0])).result()
        return await tx.one(int, "SELECT 7")

    assert await getattr(database, way)(stand_still) == 7
    assert len(set(sessions)) == 2


async def gone(url: str, session: int) -> None:
    connection = await asyncpg.connect(url)
    async with asyncio.timeout(BOUND):
        while await connection.fetchval("SELECT 1 FROM pg_stat_activity WHERE pid = $1", session):
            await asyncio.sleep(0.01)
    await connection.close()
