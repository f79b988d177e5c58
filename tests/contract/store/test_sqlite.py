"""What only SQLite has: one writer's thread, commits that are shared, and a file that a kill must not hurt."""

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from attune.kernel.errors import DatabaseUnavailable, StepMisuse
from attune.store.database import Database, Tx
from attune.store.sqlite_threads import Job, Writer
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


async def test_a_glance_is_taken_on_the_event_loop_and_a_read_is_not(database: Database) -> None:
    async def thread(tx: Tx) -> int:
        await labels(tx)
        return threading.get_ident()

    async def waits(tx: Tx) -> None:
        await asyncio.sleep(0)

    assert await database.glance(thread) == threading.get_ident()
    assert await database.read(thread) != threading.get_ident()
    with pytest.raises(StepMisuse, match="await nothing but"):
        await database.glance(waits)


async def test_a_glance_waits_for_nobody_who_holds_the_file(database: Database) -> None:
    """It would wait on the event loop, and everybody with it; a conflict is tried again later instead."""

    async def milliseconds(tx: Tx) -> int:
        return await tx.one(int, "PRAGMA busy_timeout")

    assert await database.glance(milliseconds) == 0
    assert await database.read(milliseconds) > 0


async def test_steps_that_wait_share_a_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    transact = Writer.transact

    def counted(writer: Writer, first: Job) -> object:
        jobs = transact(writer, first)
        sizes.append(len(jobs))
        return jobs

    monkeypatch.setattr(Writer, "transact", counted)
    await asyncio.gather(*(database.run(add, f"n{n}") for n in range(200)))
    assert sum(sizes) == 200
    assert len(sizes) < 100


async def test_a_full_disk_fails_those_it_hits_and_work_goes_on_when_there_is_room(
    database: Database,
) -> None:
    """SQLite then gives up the whole shared commit: nobody in it may be told that he was served."""

    async def limit(tx: Tx, pages: int) -> None:
        await tx.all(int, f"PRAGMA max_page_count = {pages}")

    async def add_much(tx: Tx, label: str) -> None:
        await add(tx, label)
        await tx.execute("UPDATE parcel SET content = hex(zeroblob(200000))")

    await database.run(limit, 20)
    labels_of = [f"n{n}" for n in range(40)]
    steps = [database.run(add_much if n == 20 else add, f"n{n}") for n in range(40)]
    outcomes = await asyncio.gather(*steps, return_exceptions=True)
    served = {label for label, o in zip(labels_of, outcomes, strict=True) if isinstance(o, list)}
    assert isinstance(outcomes[20], DatabaseUnavailable)
    assert set(await database.run(labels)) == served
    await database.run(limit, 100_000)
    await database.run(add_much, "roomy")
    assert "roomy" in await database.run(labels)


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
