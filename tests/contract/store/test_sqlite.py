"""What only SQLite has: one writer's thread, commits that are shared, and a file that a kill must not hurt."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attune.kernel.errors import StepMisuse
from attune.store import sqlite
from attune.store.database import Database, Tx
from tests.contract.store.world import SQLiteWorld, add, labels


@pytest.fixture
def world(tmp_path: Path) -> SQLiteWorld:
    return SQLiteWorld(tmp_path)


async def test_a_step_may_await_nothing_but_its_transaction(database: Database) -> None:
    async def waits(tx: Tx) -> None:
        await add(tx, "a")
        await asyncio.sleep(0)

    async def nested(tx: Tx) -> None:
        await database.run(add, "b")

    with pytest.raises(StepMisuse, match="await nothing but"):
        await database.run(waits)
    with pytest.raises(RuntimeError, match="no running event loop"):
        await database.run(nested)
    assert "a" not in await database.run(labels)


async def test_steps_that_wait_share_a_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    transact = sqlite._Writer._transact

    def counted(writer: sqlite._Writer, first: sqlite._Job) -> object:
        jobs = transact(writer, first)
        sizes.append(len(jobs))
        return jobs

    monkeypatch.setattr(sqlite._Writer, "_transact", counted)
    await asyncio.gather(*(database.run(add, f"n{n}") for n in range(200)))
    assert sum(sizes) == 200
    assert len(sizes) < 100


async def test_an_owner_killed_in_mid_write_leaves_a_sound_file_that_a_new_owner_can_take(
    world: SQLiteWorld, database: Database
) -> None:
    await database.close()
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.contract.store.endless_writer", str(world.path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    acknowledged = [owner.stdout.readline().strip() for _ in range(100)]
    owner.send_signal(signal.SIGKILL)
    acknowledged += owner.stdout.read().split("\n")[:-1]
    owner.wait()
    owner.stdout.close()
    again = world.database()
    await again.open()
    kept = await again.run(labels)
    await again.close()
    assert set(acknowledged) <= set(kept)
    assert len(acknowledged) >= 100
