"""Ids that are fetched ahead stay unique, also when the server forgets that it gave them."""

import asyncio
import random

import pytest

from attune.kernel.clock import SystemClock
from attune.store import schema
from attune.store.database import Tx
from attune.store.postgresql import PostgreSQLDatabase
from harness.postgresql import PostgreSQL


class ChangedItsMind(Exception):
    """A step's own reason to fail."""


def opened(url: str) -> PostgreSQLDatabase:
    return PostgreSQLDatabase(url, SystemClock(), random.Random(1), max_connections=1)


async def take(tx: Tx, count: int = 1) -> list[int]:
    return list(await tx.next_ids(schema.worker_history, count))


async def take_and_fail(tx: Tx) -> None:
    await take(tx)
    raise ChangedItsMind


async def test_a_server_that_dies_before_the_commit_gives_nobody_the_ids_of_another(
    postgresql: PostgreSQL, migrated_url: str
) -> None:
    """A sequence is safe on disk only with the commit of who asked it: after a crash it gives the rest out again."""
    here, there = opened(migrated_url), opened(migrated_url)
    await here.open()
    try:
        with pytest.raises(ChangedItsMind):
            await here.run(take_and_fail)
        await asyncio.to_thread(postgresql.kill)
        await asyncio.to_thread(postgresql.start)
        await there.open()
        theirs = await there.run(take, 100)
        ours = await here.run(take, 10)
    finally:
        await here.close()
        await there.close()
    assert not set(ours) & set(theirs)


async def test_ids_left_over_from_a_commit_are_used_by_the_next(migrated_url: str) -> None:
    database = opened(migrated_url)
    await database.open()
    try:
        taken = [each for _ in range(5) for each in await database.run(take)]
    finally:
        await database.close()
    assert taken == list(range(taken[0], taken[0] + 5))
