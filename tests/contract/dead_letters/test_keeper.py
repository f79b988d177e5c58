"""Every message that nobody could handle ends in the database, once, with its reason."""

import asyncio
import random

import msgspec

from attune.bus.dead_letters import DeadLetter
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

STAMP = Stamp("tests", SystemClock(), Ids(random.Random(3)))


class Kept(msgspec.Struct):
    queue: str
    reason: str
    error: str | None
    message_id: str | None
    message_type: str | None
    retry_count: int
    body: bytes


async def letters(tx: Tx) -> list[Kept]:
    return await tx.all(
        Kept,
        "SELECT queue, reason, error, message_id, message_type, retry_count, body FROM dead_letter ORDER BY id",
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
    assert [each.body for each in kept] == [b"\x00\xff not even text", b"another"]
