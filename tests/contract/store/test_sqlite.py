"""What only SQLite has: one writer's thread, commits that are shared, and a file that a kill must not hurt."""

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from attune.kernel.errors import DatabaseUnavailable, NotFound, StepMisuse
from attune.store.database import Database, Tx
from attune.store.sqlite import SQLiteDatabase
from attune.store.sqlite_threads import Job, Jobs, Writer
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


async def _thread(tx: Tx) -> int:
    await labels(tx)
    return threading.get_ident()


async def test_a_jot_is_written_on_the_event_loop_and_a_run_is_not(database: Database) -> None:
    assert await database.jot(_thread) == threading.get_ident()
    assert await database.run(_thread) != threading.get_ident()
    assert await database.jot(_thread) == threading.get_ident()


async def test_a_jot_that_meets_a_run_goes_with_it(database: Database) -> None:
    """One connection, and never two at it."""
    runs = [asyncio.create_task(database.run(_thread)) for _ in range(3)]
    jots = [asyncio.create_task(database.jot(_thread)) for _ in range(3)]
    threads = {*await asyncio.gather(*runs), *await asyncio.gather(*jots)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_jots_of_one_turn_share_a_commit_and_each_fails_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    transact = Writer.transact_at_once

    def counted(writer: Writer, first: Job, waiting: Jobs) -> object:
        jobs = transact(writer, first, waiting)
        sizes.append(len(jobs))
        return jobs

    async def fail(tx: Tx) -> None:
        await add(tx, "lost")
        raise NotFound("nothing here")

    monkeypatch.setattr(Writer, "transact_at_once", counted)
    jots = [database.jot(add, "a"), database.jot(fail), database.jot(add, "b")]
    outcomes = await asyncio.gather(*jots, return_exceptions=True)
    assert sizes == [3]
    assert isinstance(outcomes[1], NotFound)
    assert await database.run(labels) == ["a", "b"]


async def test_nobody_on_the_event_loop_waits_for_a_slow_disk(database: Database) -> None:
    """Its commits go to the thread, until it is quick again."""
    assert isinstance(database, SQLiteDatabase)
    writer = database._writer
    assert writer is not None
    writer.commit_seconds = 0.01
    assert await database.jot(_thread) != threading.get_ident()
    for _ in range(100):
        if await database.jot(_thread) == threading.get_ident():
            break
    assert await database.jot(_thread) == threading.get_ident()


async def test_nobody_on_the_event_loop_waits_for_who_holds_the_file(
    world: SQLiteWorld, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a jot finds a conflict at once; it is tried again in the thread, which may wait."""
    tries: list[tuple[bool, bool]] = []
    loop, tried_again = asyncio.get_running_loop(), asyncio.Event()
    transact = Writer._transact

    def noted(writer: Writer, first: Job, waiting: Jobs, patience: float) -> object:
        jobs = transact(writer, first, waiting, patience)
        tries.append((threading.current_thread() is threading.main_thread(), patience > 0))
        if len(tries) == 2:
            loop.call_soon_threadsafe(tried_again.set)
        return jobs

    monkeypatch.setattr(Writer, "_transact", noted)
    await world.go_away()
    jot = asyncio.create_task(database.jot(add, "a"))
    await tried_again.wait()
    await world.come_back()
    await jot
    assert tries[:2] == [(True, False), (False, True)]
    assert await database.run(labels) == ["a"]


async def test_closing_lets_jots_finish(world: SQLiteWorld, database: Database) -> None:
    jots = [asyncio.create_task(database.jot(add, f"n{n}")) for n in range(5)]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*jots)
    again = world.database()
    await again.open()
    assert len(await again.run(labels)) == 5
    await again.close()


async def test_steps_that_wait_share_a_commit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    transact = Writer.transact

    def counted(writer: Writer, first: Job, waiting: Jobs) -> object:
        jobs = transact(writer, first, waiting)
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
