"""A step happens whole or not at all, whoever else is at work."""

import asyncio

import pytest

from attune.kernel.errors import (
    BrokenConstraint,
    Contention,
    DatabaseUnavailable,
    DuplicateRow,
    InvalidInput,
    MissingReference,
    Outdated,
    StepMisuse,
)
from attune.store.database import Database, Tx
from tests.contract.store.world import Parcel, World, add, labels, parcel


class Boom(Exception):
    pass


async def add_then_fail(tx: Tx, label: str) -> None:
    await add(tx, label)
    raise Boom


async def look_then_fail(tx: Tx) -> None:
    await labels(tx)
    raise Boom


async def test_a_step_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(Boom):
        await database.run(add_then_fail, "a")
    assert await database.run(labels) == []


async def test_a_step_that_fails_takes_no_other_with_it(database: Database) -> None:
    """On SQLite these share commits; each must stand on its own savepoint."""
    steps = [database.run(add_then_fail if n % 3 == 0 else add, f"n{n:03}") for n in range(200)]
    outcomes = await asyncio.gather(*steps, return_exceptions=True)
    failed = {n for n, outcome in enumerate(outcomes) if isinstance(outcome, Boom)}
    assert failed == set(range(0, 200, 3))
    kept = await database.run(labels)
    assert sorted(kept) == [f"n{n:03}" for n in range(200) if n % 3]


async def test_a_read_sees_what_was_committed_and_writes_nothing(database: Database) -> None:
    await database.run(add, "a")
    assert await database.read(labels) == ["a"]
    with pytest.raises(Exception, match=r"read.?only"):
        await database.read(add, "b")
    assert await database.read(labels) == ["a"]


async def test_reads_go_on_beside_writes(database: Database) -> None:
    async def write_all() -> None:
        for n in range(50):
            await database.run(add, f"n{n:02}")

    writer = asyncio.create_task(write_all())
    seen = []
    while not writer.done():
        seen.append(len(await database.read(labels)))
    await writer
    assert seen == sorted(seen)
    assert len(await database.read(labels)) == 50


async def test_a_jot_is_a_run(database: Database) -> None:
    """It is committed when it returns, whole or not at all; its effects follow, and a conflict is tried again."""
    told, tries = [], []

    async def told_of(tx: Tx) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise Contention("another was first")
        await add(tx, "a")
        tx.on_commit(lambda: told.append("a"))

    async def fails(tx: Tx) -> None:
        await add(tx, "b")
        tx.on_commit(lambda: told.append("b"))
        raise Boom

    await database.jot(told_of)
    assert (told, len(tries)) == (["a"], 2)
    assert await database.read(labels) == ["a"]
    with pytest.raises(Boom):
        await database.jot(fails)
    assert told == ["a"]
    await asyncio.gather(
        *(database.jot(add, f"j{n:02}") for n in range(20)),
        *(database.run(add, f"r{n:02}") for n in range(20)),
    )
    assert len(await database.read(labels)) == 41


async def test_a_glance_is_a_read(database: Database) -> None:
    """It sees what was committed before it, on one snapshot, writes nothing, and fails in the same words."""

    async def twice(tx: Tx) -> tuple[list[str], list[str]]:
        return await labels(tx), await labels(tx)

    async def too_large(tx: Tx) -> list[str]:
        return await tx.all(str, "SELECT label FROM parcel WHERE id = :id", id=2**70)

    for n in range(20):
        await database.run(add, f"n{n:02}")
        first, second = await database.glance(twice)
        assert len(first) == n + 1
        assert first == second
    with pytest.raises(Exception, match=r"read.?only"):
        await database.glance(add, "b")
    with pytest.raises(InvalidInput):
        await database.glance(too_large)
    with pytest.raises(Boom):
        await database.glance(look_then_fail)
    assert len(await database.glance(labels)) == 20


async def test_glances_go_on_beside_writes_and_hold_up_none(database: Database) -> None:
    async def write_all() -> None:
        for n in range(50):
            await database.run(add, f"n{n:02}")

    writer = asyncio.create_task(write_all())
    seen = []
    while not writer.done():
        seen.append(len(await database.glance(labels)))
        await asyncio.sleep(0)
    await writer
    assert seen == sorted(seen)
    assert len(await database.glance(labels)) == 50


async def test_a_glance_that_meets_a_conflict_is_tried_again(database: Database) -> None:
    tries = []

    async def contended(tx: Tx) -> list[str]:
        tries.append(1)
        if len(tries) == 1:
            raise Contention("another was first")
        return await labels(tx)

    assert await database.glance(contended) == []
    assert len(tries) == 2


async def test_broken_rules_of_a_table_have_names(database: Database) -> None:
    await database.run(add, "a")
    with pytest.raises(DuplicateRow, match="label") as duplicate:
        await database.run(add, "a")
    assert "label" in str(duplicate.value.fields["constraint"])

    async def inside(tx: Tx) -> None:
        await tx.insert(parcel, [Parcel(50, "b", inside=999)])

    async def negative(tx: Tx) -> None:
        await tx.insert(parcel, [Parcel(51, "c", weight=-1)])

    with pytest.raises(MissingReference):
        await database.run(inside)
    with pytest.raises(BrokenConstraint, match="weight"):
        await database.run(negative)
    assert await database.run(labels) == ["a"]


async def test_after_a_failed_statement_the_step_cannot_pretend_nothing_happened(
    database: Database,
) -> None:
    async def swallow(tx: Tx) -> str:
        await add(tx, "new")
        with pytest.raises(DuplicateRow):
            await add(tx, "a")
        return "fine"

    async def go_on(tx: Tx) -> None:
        with pytest.raises(DuplicateRow):
            await add(tx, "a")
        await add(tx, "b")

    await database.run(add, "a")
    with pytest.raises(DuplicateRow):
        await database.run(swallow)
    with pytest.raises(StepMisuse):
        await database.run(go_on)
    assert await database.run(labels) == ["a"]


async def test_a_conflict_is_tried_again_in_one_place_and_then_given_up(database: Database) -> None:
    tries = []

    async def contended(tx: Tx, losses: int) -> str:
        tries.append(1)
        await add(tx, f"of {losses}, try {len(tries)}")
        if len(tries) <= losses:
            raise Contention("another was first")
        return "won"

    assert await database.run(contended, 3) == "won"
    assert await database.run(labels) == ["of 3, try 4"]
    tries.clear()
    with pytest.raises(Contention):
        await database.run(contended, 1_000)
    assert len(tries) == 10


async def test_a_step_that_began_with_something_outdated_begins_anew_without_a_pause(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sleep(_seconds: float) -> None:
        raise AssertionError

    monkeypatch.setattr(database._clock, "sleep", sleep)
    tries: list[int] = []

    async def outdated(tx: Tx) -> str:
        tries.append(1)
        await add(tx, f"try {len(tries)}")
        if len(tries) == 1:
            raise Outdated("it has changed")
        return "done"

    assert await database.run(outdated) == "done"
    assert await database.run(labels) == ["try 2"]


async def test_effects_follow_the_commit_and_only_the_commit(database: Database) -> None:
    """F27: what is announced was committed, and what failed is not announced."""
    seen: list[str] = []
    tries: list[int] = []

    async def announced(tx: Tx, label: str, fail: bool = False) -> None:
        tries.append(1)
        await add(tx, label)
        tx.on_commit(lambda: seen.append(label))
        if fail:
            raise Boom
        if label == "again" and len(tries) == 1:
            raise Contention("once more")

    with pytest.raises(Boom):
        await database.run(announced, "lost", fail=True)
    assert seen == []
    tries.clear()
    await database.run(announced, "again")
    assert seen == ["again"]


async def test_concurrent_increments_lose_nothing(database: Database) -> None:
    async def increment(tx: Tx) -> None:
        weight = await tx.one(int, "SELECT weight FROM parcel WHERE label = 'a' FOR UPDATE")
        await tx.execute("UPDATE parcel SET weight = :weight WHERE label = 'a'", weight=weight + 1)

    async def weight(tx: Tx) -> int:
        return await tx.one(int, "SELECT weight FROM parcel WHERE label = 'a'")

    await database.run(add, "a")
    await asyncio.gather(*(database.run(increment) for _ in range(100)))
    assert await database.run(weight) == 100


async def test_the_caller_s_cancellation_leaves_the_database_usable(database: Database) -> None:
    tasks = [asyncio.create_task(database.run(add, f"n{n}")) for n in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.wait(tasks)
    kept = set(await database.run(labels))
    assert {f"n{n}" for n in range(1, 20, 2)} <= kept
    await database.run(add, "after")


async def test_wakes_reach_listeners_after_the_commit_and_only_then(database: Database) -> None:
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def change(tx: Tx, topic: str, key: str, fail: bool = False) -> None:
        tx.wake(topic, key)
        tx.wake(topic, key)
        if fail:
            raise Boom

    stop = database.listen("limits", lambda key: heard.put_nowait(("limits", key)))
    database.listen("rules", lambda key: heard.put_nowait(("rules", key)))
    with pytest.raises(Boom):
        await database.run(change, "limits", "never", fail=True)
    await database.run(change, "limits", "first")
    assert await next_with_key(heard) == ("limits", "first")
    stop()
    stop()
    await database.run(change, "limits", "unheard")
    await database.run(change, "rules", "last")
    assert await next_with_key(heard) == ("rules", "last")


async def next_with_key(heard: "asyncio.Queue[tuple[str, str]]") -> tuple[str, str]:
    """Listeners may be told "look at everything" at any time; that is not what is asked for here."""
    async with asyncio.timeout(10):
        while True:
            topic, key = await heard.get()
            if key:
                return topic, key


async def test_f34_a_wake_never_fails_a_commit_by_its_size(database: Database) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    database.listen("rule", heard.put_nowait)

    async def change(tx: Tx) -> None:
        await add(tx, "a")
        tx.wake("rule", "x" * 20_000)
        for n in range(300):
            tx.wake("rule", f"{n:0500}")

    await database.run(change)
    assert await database.run(labels) == ["a"]
    keys: set[str] = set()
    async with asyncio.timeout(10):
        while len(keys) < 301:
            keys.add(await heard.get())
    assert "" in keys


async def test_a_closed_database_says_so(database: Database) -> None:
    await database.close()
    await database.close()
    for ask in (database.run, database.jot, database.read, database.glance):
        with pytest.raises(DatabaseUnavailable, match="closed"):
            await ask(labels)


async def test_closing_lets_running_steps_finish(world: World, database: Database) -> None:
    tasks = [asyncio.create_task(database.run(add, f"n{n}")) for n in range(30)]
    await asyncio.sleep(0)
    await database.close()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    finished = {f"n{n}" for n, outcome in enumerate(outcomes) if isinstance(outcome, list)}
    again = world.database()
    await again.open()
    assert set(await again.run(labels)) == finished
    await again.close()
