"""What is announced after a commit arrives when the broker is there, and is only late when it is not."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from attune.bus.announcer import COMPANY, LEISURE, Announcer
from attune.bus.memory import MemoryBus
from attune.bus.memory_broker import MemoryBroker
from attune.bus.port import Post
from attune.bus.topology import StageQueue, standard_topology
from attune.kernel.clock import SystemClock
from attune.kernel.duty import Duty, DutyConfig
from attune.kernel.envelope import Envelope, Stamp
from attune.kernel.ids import EventId, ExecutionId, Ids, WorkerId
from attune.kernel.messages import (
    EventCreated,
    ExecutionScheduled,
    ExecutionStatusChanged,
    MessageType,
    Payload,
)
from attune.kernel.statuses import ExecutionStatus
from attune.simulation.clock import ManualClock
from attune.store.database import Database, Tx
from attune.store.sqlite import SQLiteDatabase

INTERVAL = 10.0


class Reader(Duty[DutyConfig]):
    """Finds its work in the database; a message only makes it look at once."""

    name = "reader"

    def __init__(self, database: Database, clock: ManualClock) -> None:
        super().__init__(DutyConfig(interval=INTERVAL), clock)
        self._database = database
        self.found: list[tuple[int, float]] = []

    async def run_once(self) -> None:
        for number in await self._database.run(take_all):
            self.found.append((number, self.clock.monotonic()))

    async def on_message(self, _: Envelope) -> None:
        self.hurry()


async def create_table(tx: Tx) -> None:
    await tx.execute("CREATE TABLE work (id INTEGER PRIMARY KEY)")


async def take_all(tx: Tx) -> list[int]:
    return await tx.all(int, "DELETE FROM work RETURNING id")


class World:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.broker = MemoryBroker(self.clock)
        self.bus = MemoryBus(self.broker, standard_topology(), publish_timeout=5)
        self.database = SQLiteDatabase(folder / "attune.db", SystemClock(), random.Random(1))
        self.announcer = Announcer(self.bus, self.clock)
        self.reader = Reader(self.database, self.clock)
        self.stamp = Stamp("tests", self.clock, Ids(random.Random(1)))

    async def commit(self, number: int, fail: bool = False) -> None:
        async def step(tx: Tx) -> None:
            await tx.execute("INSERT INTO work (id) VALUES (:id)", id=number)
            item = EventCreated(event_id=EventId(number))
            message = self.stamp.envelope(MessageType.EVENT_CREATED, item)
            tx.on_commit(lambda: self.announcer.announce(message))
            if fail:
                raise sa.exc.InvalidRequestError("the step fails after it has announced")

        await self.database.run(step)

    async def settle_until(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.reader.found) < count:
                await self.clock.settle()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.database.open()
    await world.database.run(create_table)
    await world.bus.start()
    await world.bus.consume(StageQueue.EVENT_CREATED, world.reader.on_message)
    await world.reader.start()
    await world.clock.settle()
    yield world
    await world.reader.stop()
    await world.bus.close()
    await world.database.close()


async def test_f27_a_committed_step_is_announced_and_read_at_once(world: World) -> None:
    await world.commit(1)
    await world.settle_until(1)
    assert world.reader.found == [(1, 0.0)]


async def test_f27_a_publish_that_fails_costs_time_and_never_work(world: World) -> None:
    world.broker.stop()
    await world.commit(1)
    await world.clock.settle()
    assert world.reader.found == []
    stopping = asyncio.create_task(world.announcer.stop())
    await world.clock.advance(INTERVAL)
    await stopping
    await world.settle_until(1)
    assert world.reader.found == [(1, INTERVAL)]


async def test_f27_a_commit_that_fails_is_not_announced(world: World) -> None:
    with pytest.raises(sa.exc.InvalidRequestError):
        await world.commit(1, fail=True)
    await world.clock.settle()
    await world.announcer.stop()
    assert await world.bus.depth(StageQueue.EVENT_CREATED) == 0
    assert world.reader.found == []


async def test_announcements_for_several_queues_all_arrive(world: World) -> None:
    heard: list[tuple[str, int]] = []
    for queue in (StageQueue.ENFORCEMENT_CREATED, StageQueue.EXECUTION_REQUESTED):

        async def hear(envelope: Envelope, queue: str = queue) -> None:
            heard.append((queue, len(envelope.items)))

        await world.bus.consume(queue, hear)
    message = world.stamp.envelope(MessageType.EVENT_CREATED, EventCreated(event_id=EventId(1)))
    world.announcer.announce(message, to=StageQueue.ENFORCEMENT_CREATED)
    world.announcer.announce(message, message, to=StageQueue.EXECUTION_REQUESTED)
    await world.announcer.stop()
    await world.clock.settle()
    assert sorted(heard) == [
        (StageQueue.ENFORCEMENT_CREATED, 1),
        (StageQueue.EXECUTION_REQUESTED, 1),
        (StageQueue.EXECUTION_REQUESTED, 1),
    ]


def news(number: int) -> list[Payload]:
    status = ExecutionStatus.COMPLETED
    return [
        ExecutionStatusChanged(
            execution_id=ExecutionId(number), status=status, action_ref="core.noop", attempt=1
        )
    ]


class Heard:
    """What comes in one queue: of each message its type and how many items it has."""

    def __init__(self) -> None:
        self.messages: list[tuple[MessageType, int]] = []

    async def __call__(self, envelope: Envelope) -> None:
        self.messages.append((envelope.message_type, len(envelope.items)))


async def test_news_wait_a_moment_and_leave_as_one_message(world: World) -> None:
    heard = Heard()
    await world.bus.consume(StageQueue.EXECUTION_STATUS, heard)
    for number in range(3):
        world.announcer.mention(world.stamp, MessageType.EXECUTION_STATUS_CHANGED, news(number))
    await world.clock.settle()
    assert heard.messages == []
    await world.clock.advance(1)
    assert heard.messages == [(MessageType.EXECUTION_STATUS_CHANGED, 3)]
    world.announcer.mention(world.stamp, MessageType.EXECUTION_STATUS_CHANGED, news(3))
    await world.clock.advance(1)
    assert heard.messages[1:] == [(MessageType.EXECUTION_STATUS_CHANGED, 1)]


async def test_news_that_nobody_looks_at_wait_longer_and_hold_up_no_others(world: World) -> None:
    heard = Heard()
    await world.bus.consume(StageQueue.EXECUTION_STATUS, heard)
    kind = MessageType.EXECUTION_STATUS_CHANGED
    leisurely = Stamp("leisurely", world.clock, Ids(random.Random(2)))
    world.announcer.mention(leisurely, kind, news(1), LEISURE)
    for number in (2, 3):
        world.announcer.mention(world.stamp, kind, news(number))
    await world.clock.advance(COMPANY)
    assert heard.messages == [(kind, 2)]
    await world.clock.advance(LEISURE)
    assert heard.messages[1:] == [(kind, 1)]


async def test_what_is_told_takes_along_what_was_mentioned_of_its_kind(world: World) -> None:
    heard: list[int] = []

    async def hear(envelope: Envelope) -> None:
        heard.extend(item.execution_id for item in envelope.items)  # type: ignore[attr-defined]

    await world.bus.consume(StageQueue.EXECUTION_STATUS, hear)
    world.announcer.mention(world.stamp, MessageType.EXECUTION_STATUS_CHANGED, news(1))
    world.announcer.tell(world.stamp, MessageType.EXECUTION_STATUS_CHANGED, news(2))
    await world.clock.settle()
    assert heard == [1, 2]
    await world.clock.advance(1)
    assert heard == [1, 2]


async def test_an_order_does_not_wait_for_news_nor_take_them_along(world: World) -> None:
    heard = Heard()
    await world.bus.consume(StageQueue.EXECUTION_STATUS, heard)
    world.announcer.mention(world.stamp, MessageType.EXECUTION_STATUS_CHANGED, news(1))
    message = world.stamp.envelope(MessageType.EVENT_CREATED, EventCreated(event_id=EventId(1)))
    world.announcer.announce(message, to=StageQueue.EXECUTION_STATUS)
    await world.clock.settle()
    assert heard.messages == [(MessageType.EVENT_CREATED, 1)]
    await world.clock.advance(1)
    assert heard.messages[1:] == [(MessageType.EXECUTION_STATUS_CHANGED, 1)]


class SlowBus(MemoryBus):
    """Confirms nothing until it is let go."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.go = asyncio.Event()
        self.published: list[int] = []

    def post(self, *posts: Post) -> Awaitable[None]:
        self.published.append(len(posts))
        return asyncio.create_task(self._confirmed())

    async def _confirmed(self) -> None:
        await self.go.wait()


async def test_a_message_does_not_wait_for_the_confirmation_of_the_one_before(
    world: World,
) -> None:
    bus = SlowBus(world.broker, standard_topology())
    announcer = Announcer(bus, world.clock)
    message = world.stamp.envelope(MessageType.EVENT_CREATED, EventCreated(event_id=EventId(1)))
    for _ in range(7):
        announcer.announce(message)
        await world.clock.settle()
    assert bus.published == [1, 1, 1, 1], "the others wait until few are under way"
    bus.go.set()
    await world.clock.settle()
    assert bus.published == [1, 1, 1, 1, 3]
    await announcer.stop()


async def test_news_that_wait_are_told_before_a_process_stops(world: World) -> None:
    heard = Heard()
    await world.bus.consume(StageQueue.EXECUTION_STATUS, heard)
    world.announcer.mention(world.stamp, MessageType.EXECUTION_STATUS_CHANGED, news(1))
    await world.announcer.stop()
    await world.clock.settle()
    assert heard.messages == [(MessageType.EXECUTION_STATUS_CHANGED, 1)]


async def test_a_message_that_cannot_be_sent_harms_neither_its_step_nor_those_after_it(
    world: World,
) -> None:
    """An order without a queue has no way to go."""
    order = ExecutionScheduled(execution_id=ExecutionId(1), worker_id=WorkerId(1), attempt=1)
    world.announcer.announce(world.stamp.envelope(MessageType.EXECUTION_SCHEDULED, order))
    await world.commit(1)
    await world.settle_until(1)
    assert world.reader.found == [(1, 0.0)]
