"""Writes that are put off happen with the commit at the latest, and nobody can tell that they were."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from attune.kernel.errors import BrokenConstraint, DuplicateRow
from attune.store.database import Answer, Database, Tx
from tests.contract.store.world import Label, Parcel, State, add, labels, parcel

WEIGH = "UPDATE parcel SET weight = weight + :by WHERE label = :label"
SEND = """
    UPDATE parcel SET state = 'sent', sent_at = :now, content = :content WHERE label = ANY(:labels::text[])
    RETURNING id, label, state, weight, fragile, ratio, sent_at, content, inside
"""
NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


async def weights(tx: Tx) -> list[int]:
    return await tx.all(int, "SELECT weight FROM parcel ORDER BY id")


async def test_they_are_there_after_the_commit(database: Database) -> None:
    async def write(tx: Tx) -> None:
        await tx.later(WEIGH, by=2, label="a")
        await tx.insert_later(parcel, [Parcel(7, "c", weight=5)])
        await tx.later("DELETE FROM parcel WHERE label = :label", label="b")

    await database.run(add, "a", "b")
    await database.run(write)
    assert await database.read(labels) == ["a", "c"]
    assert await database.read(weights) == [2, 5]


async def test_whatever_comes_after_them_sees_them(database: Database) -> None:
    async def write(tx: Tx) -> list[Any]:
        await tx.later(WEIGH, by=1, label="a")
        read = await weights(tx)
        await tx.later(WEIGH, by=10, label="a")
        touched = await tx.execute("UPDATE parcel SET weight = weight * 2 WHERE weight = 11")
        await tx.later(WEIGH, by=100, label="a")
        [made] = await tx.next_ids(parcel)
        await tx.insert(parcel, [Parcel(made, "b")])
        return [read, touched, await weights(tx)]

    await database.run(add, "a")
    assert await database.run(write) == [[1], 1, [122, 0]]


async def test_the_same_write_twice_happens_twice(database: Database) -> None:
    async def write(tx: Tx) -> None:
        for _ in range(3):
            await tx.later(WEIGH, by=1, label="a")

    await database.run(add, "a")
    await database.run(write)
    assert await database.read(weights) == [3]


async def test_what_they_tell_is_known_after_the_commit(database: Database) -> None:
    async def write(tx: Tx) -> tuple[Answer[Parcel], Answer[Label]]:
        content = {"name": "cup", "notes": [1, None, "é\n"]}
        sent = await tx.answer_later(Parcel, SEND, now=NOW, content=content, labels=["a", "b"])
        await tx.later(WEIGH, by=4, label="c")
        none = await tx.answer_later(
            Label, "DELETE FROM parcel WHERE label = :label RETURNING id, label", label="nobody"
        )
        return sent, none

    await database.run(add, "a", "b", "c")
    sent, none = await database.run(write)
    assert sorted(one.label or "" for one in sent.rows) == ["a", "b"]
    assert none.rows == []
    first = min(sent.rows, key=lambda one: one.id)
    assert (first.state, first.sent_at) == (State.SENT, NOW)
    assert msgspec.convert(first.content, dict[str, Any])["notes"] == [1, None, "é\n"]


async def test_a_step_that_fails_afterwards_leaves_nothing(database: Database) -> None:
    async def write(tx: Tx) -> None:
        await tx.insert_later(parcel, [Parcel(1, "a")])
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        await database.run(write)
    assert await database.read(labels) == []


async def test_one_that_breaks_a_rule_fails_the_step(database: Database) -> None:
    async def too_light(tx: Tx) -> None:
        await tx.insert_later(parcel, [Parcel(8, "b")])
        await tx.later(WEIGH, by=-1, label="a")

    async def twice(tx: Tx) -> None:
        await tx.later(WEIGH, by=1, label="a")
        await tx.insert_later(parcel, [Parcel(9, "a")])

    await database.run(add, "a")
    with pytest.raises(BrokenConstraint):
        await database.run(too_light)
    with pytest.raises(DuplicateRow):
        await database.run(twice)
    assert await database.read(labels) == ["a"]
    assert await database.read(weights) == [0]


async def test_wakes_leave_with_them(database: Database) -> None:
    heard = asyncio.Event()
    stop = database.listen("parcels", lambda key: heard.set() if key == "a" else None)

    async def write(tx: Tx) -> Answer[Label]:
        tx.wake("parcels", "a")
        return await tx.answer_later(
            Label, "UPDATE parcel SET weight = 3 WHERE label = 'a' RETURNING id, label"
        )

    await database.run(add, "a")
    answer = await database.run(write)
    assert [one.label for one in answer.rows] == ["a"]
    await asyncio.wait_for(heard.wait(), 30)
    stop()
