"""Every message that nobody could handle ends in the database, once, with its reason."""

import asyncio
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
import structlog.testing

from attune.bus.dead_letters import DeadLetter, read_dead_letter
from attune.bus.outcome import Reason
from attune.bus.port import Bus
from attune.bus.topology import StageQueue
from attune.dead_letters.keeper import DeadLetterKeeper
from attune.kernel.clock import SystemClock
from attune.kernel.envelope import Envelope, Stamp, encode
from attune.kernel.errors import DatabaseUnavailable, NotFound
from attune.kernel.ids import EnforcementId, Ids
from attune.kernel.messages import EnforcementCreated, MessageType
from attune.store.database import Database, Tx
from tests.contract.dead_letters.post import Post

STAMP = Stamp("tests", SystemClock(), Ids(random.Random(3)))


class Kept(msgspec.Struct):
    queue: str
    reason: str
    error: str | None
    message_id: str | None
    message_type: str | None
    retry_count: int
    body: bytes
    died_at: datetime


async def letters(tx: Tx) -> list[Kept]:
    return await tx.all(
        Kept,
        """SELECT queue, reason, error, message_id, message_type, retry_count, body, died_at
             FROM dead_letter ORDER BY id""",
    )


async def until_kept(database: Database, count: int) -> list[Kept]:
    async with asyncio.timeout(20):
        while len(found := await database.read(letters)) < count:
            await asyncio.sleep(0.02)
    return found


def enforcement(number: int) -> Envelope:
    item = EnforcementCreated(enforcement_id=EnforcementId(number))
    return STAMP.envelope(MessageType.ENFORCEMENT_CREATED, item)


async def orphan(envelope: Envelope) -> None:
    raise NotFound("no such enforcement")


async def test_f30_what_a_handler_refuses_is_kept_with_its_reason(
    database: Database, bus: Bus
) -> None:
    keeper = DeadLetterKeeper(bus, database, SystemClock())
    await keeper.start()
    await bus.consume(StageQueue.ENFORCEMENT_CREATED, orphan)
    sent = enforcement(404)
    await bus.publish(sent)
    [kept] = await until_kept(database, 1)
    assert (kept.queue, kept.reason) == ("executor.enforcement.created", "failed")
    assert kept.error == "no such enforcement"
    assert kept.message_id == str(sent.message_id)
    assert kept.message_type == "enforcement.created"
    assert kept.body == encode(sent)
    await keeper.stop()
    await keeper.stop()


async def test_a_letter_waits_for_a_database_that_is_away(database: Database, bus: Bus) -> None:
    keeper = DeadLetterKeeper(bus, database, SystemClock())
    tries = []

    async def unlucky(letter: DeadLetter) -> None:
        tries.append(letter)
        if len(tries) < 3:
            raise DatabaseUnavailable("away")
        await keeper.keep(letter)

    await bus.consume_dead_letters(unlucky)
    await bus.consume(StageQueue.ENFORCEMENT_CREATED, orphan)
    await bus.publish(enforcement(1))
    [kept] = await until_kept(database, 1)
    assert len(tries) == 3
    assert (kept.queue, kept.reason) == ("executor.enforcement.created", "failed")


async def test_a_letter_that_is_delivered_twice_is_kept_once(database: Database, bus: Bus) -> None:
    keeper = DeadLetterKeeper(bus, database, SystemClock())
    letter = DeadLetter(
        queue="executor.event.created",
        reason=Reason.EXPIRED,
        error="",
        died_at=SystemClock().now(),
        body=b"\x00\xff not even text",
    )
    await asyncio.gather(*(keeper.keep(letter) for _ in range(5)))
    await keeper.keep(msgspec.structs.replace(letter, body=b"another"))
    kept = await database.read(letters)
    assert sorted(each.body for each in kept) == [b"\x00\xff not even text", b"another"]


# What a foreign sender may write, and what is kept of it.
STRANGE: list[tuple[str, Any, str, Any]] = [
    ("message_type", "a\0b", "message_type", "a\ufffdb"),
    ("message_type", "x" * 100_000, "message_type", "x" * 500),
    ("message_type", "", "message_type", None),
    ("retry_count", 2**70, "retry_count", 2**31 - 1),
    ("retry_count", -5, "retry_count", 0),
    ("retry_count", True, "retry_count", 1),
    ("message_id", "no uuid", "message_id", None),
]


@pytest.mark.parametrize(("name", "sent", "column", "kept"), STRANGE)
async def test_whatever_a_body_says_of_itself_the_letter_is_kept(
    database: Database, bus: Bus, name: str, sent: object, column: str, kept: object
) -> None:
    keeper = DeadLetterKeeper(bus, database, SystemClock())
    body = msgspec.json.encode({name: sent})
    await keeper.keep(read_dead_letter("x.dlq", {}, body, SystemClock().now()))
    [found] = await database.read(letters)
    assert (getattr(found, column), found.body) == (kept, body)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-attune-error": "nul \0 and half \ud800"},
        {"x-attune-queue": "q\0\ud800" + "x" * 1000},
        {"x-attune-died-at": "2026-05-01T12:00:00"},
        {"x-attune-died-at": "0001-01-01T00:00:00+14:00"},
        {"x-attune-died-at": "9999-12-31T23:59:59-12:00"},
    ],
)
async def test_whatever_the_headers_say_the_letter_is_kept_once(
    database: Database, bus: Bus, headers: dict[str, str]
) -> None:
    keeper = DeadLetterKeeper(bus, database, SystemClock())
    letter = read_dead_letter(
        "x.dlq", {"x-attune-reason": "failed", **headers}, b"", SystemClock().now()
    )
    await keeper.keep(letter)
    await keeper.keep(letter)
    [found] = await database.read(letters)
    assert found.reason == "failed"
    assert "\0" not in found.queue + (found.error or "")


async def test_the_time_of_a_death_is_kept_in_utc(database: Database, bus: Bus) -> None:
    keeper = DeadLetterKeeper(bus, database, SystemClock())
    there = datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    letter = DeadLetter(queue="q", reason=Reason.FAILED, error="", died_at=there, body=b"")
    await keeper.keep(letter)
    await keeper.keep(msgspec.structs.replace(letter, died_at=datetime(2026, 5, 1, 13)))
    found = await database.read(letters)
    assert [each.died_at for each in found] == [
        datetime(2026, 5, 1, 12, tzinfo=UTC),
        datetime(2026, 5, 1, 13, tzinfo=UTC),
    ]


async def test_no_body_stands_in_the_log(database: Database, bus: Bus) -> None:
    keeper = DeadLetterKeeper(bus, database, SystemClock())
    body = msgspec.json.encode({"message_type": "x" * 100_000, "password": "hunter2"})
    with structlog.testing.capture_logs() as lines:
        await keeper.keep(read_dead_letter("x.dlq", {}, body, SystemClock().now()))
    [line] = lines
    assert line["event"] == "Kept a dead letter."
    assert "hunter2" not in str(line)
    assert len(str(line)) < 2000


async def test_who_is_told_of_letters_hears_of_each_once_it_is_kept(post: Post) -> None:
    bus = await post.make_bus()
    told: list[tuple[bytes, int]] = []

    async def then(letter: DeadLetter) -> None:
        told.append((letter.body, len(await post.letters())))

    await post.start_keeper(bus, then)
    await bus.consume(StageQueue.ENFORCEMENT_CREATED, orphan)
    sent = enforcement(1)
    await bus.publish(sent)
    await post.until(lambda: bool(told), "it is told")
    assert told == [(encode(sent), 1)]


async def test_what_they_fail_with_comes_back_and_is_kept_once(post: Post) -> None:
    bus = await post.make_bus()
    told: list[DeadLetter] = []

    async def then(letter: DeadLetter) -> None:
        told.append(letter)
        if len(told) < 3:
            raise DatabaseUnavailable("away")

    await post.start_keeper(bus, then)
    await bus.consume(StageQueue.ENFORCEMENT_CREATED, orphan)
    await bus.publish(enforcement(1))
    await post.until(lambda: len(told) == 3, "it is told until it is well")
    assert [each.reason for each in told] == [Reason.FAILED] * 3
    assert len(await post.letters()) == 1
    assert await bus.depth(f"{StageQueue.ENFORCEMENT_CREATED}.dlq") == 0
