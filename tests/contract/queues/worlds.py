"""A queue in each of its forms, over a database that has the lanes and executions which the items name."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar

from attune.kernel.clock import SystemClock
from attune.kernel.ids import ExecutionId, Ids, LaneId
from attune.kernel.settings import Settings
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.port import ExecutionQueue, QueueItem, requested_payload
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.mirror import RedisMirror
from attune.pipeline.queues.redis.queue import RedisQueue
from attune.pipeline.queues.sql.queue import SqlQueue
from attune.store.database import Database, Tx
from attune.store.opening import database_from
from attune.store.values import Json
from harness.waiting import NotInTime

T = TypeVar("T")

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_TABLES = ("entry", "lane", "decision", "execution")


class World:
    """The SQL queue on one database, which has its schema. Any number of clients, each as another process would have it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.database = database_from(settings, self.clock, random.Random(1))
        self._opened: list[Database] = []
        self._sequences: dict[LaneId | None, int] = {}
        self._executions = 95
        self._moments = 0

    @property
    def queue(self) -> ExecutionQueue:
        return SqlQueue(self.database, self.clock)

    async def __aenter__(self) -> Self:
        await self._open(self.database)
        return self

    async def __aexit__(self, *_: object) -> None:
        for database in self._opened:
            await database.close()

    async def client(self) -> ExecutionQueue:
        """One of another process. SQLite belongs to one process, so there it shares the database."""
        if self.settings.embedded:
            return SqlQueue(self.database, self.clock)
        database = database_from(self.settings, self.clock, random.Random(2))
        await self._open(database)
        return SqlQueue(database, self.clock)

    async def restart(self) -> None:
        """Every client is gone; new ones find what is kept."""
        await self.database.close()
        self.database = database_from(self.settings, self.clock, random.Random(1))
        await self._open(self.database)

    async def lose_everything(self) -> None:
        """What a queue outside the database forgets is brought back; the database forgets nothing."""
        await self.restart()

    async def lane(self, name: str) -> LaneId:
        async def add(tx: Tx) -> int:
            return await tx.one(
                int,
                """INSERT INTO lane (action_ref, group_key, paused, next_sequence, queue_length, active_count,
                          total_enqueued, total_completed, last_enqueued_at, created, updated)
                   VALUES (:name, '', false, 1, 0, 0, 0, 0, :at, :at, :at) RETURNING id""",
                name=name,
                at=START,
            )

        return LaneId(await self.database.run(add))

    async def item(
        self,
        lane: LaneId | None = None,
        priority: Priority = Priority.NORMAL,
        *,
        later: timedelta = timedelta(seconds=1),
    ) -> QueueItem:
        """A new execution with the next number of its lane, `later` than the one before. Ids pass from 99 to 100 early."""
        self._executions += 1
        execution = ExecutionId(self._executions)
        self._moments += later // timedelta(microseconds=1)
        await self._plant(execution, priority)
        return QueueItem(
            execution=execution,
            lane=lane,
            priority=priority,
            sequence=self.next_sequence(lane),
            enqueued_at=START + timedelta(microseconds=self._moments),
            payload=requested_payload(execution, None, "core.echo", None),
        )

    async def items(self, lane: LaneId | None, count: int) -> list[QueueItem]:
        return [await self.item(lane) for _ in range(count)]

    def next_sequence(self, lane: LaneId | None) -> int:
        self._sequences[lane] = self._sequences.get(lane, 0) + 1
        return self._sequences[lane]

    async def clear(self) -> None:
        for table in _TABLES:
            await self.execute(f"DELETE FROM {table}")
        self._sequences.clear()
        self._executions = 95

    async def execute(self, sql: str, **parameters: Any) -> int:
        async def change(tx: Tx) -> int:
            return await tx.execute(sql, **parameters)

        return await self.database.run(change)

    async def _plant(self, execution: ExecutionId, priority: Priority) -> None:
        await self.execute(
            """INSERT INTO execution (id, action_ref, definition, status, attempt, priority, config,
                      created, updated)
               VALUES (:id, 'core.echo', 1, 'requested', 1, :priority, :config, :at, :at)""",
            id=execution,
            priority=priority,
            config=Json({}),
            at=START,
        )

    async def _open(self, database: Database) -> None:
        await database.open()
        self._opened.append(database)


class RedisWorld(World):
    """The Redis queue, whole from the start; its database holds what a rebuild would find."""

    def __init__(self, settings: Settings, url: str, timeout: float = 2.0) -> None:
        super().__init__(settings)
        self.url = url
        self.timeout = timeout
        self.link = RedisLink(url, self.clock, timeout)
        self.mirror = RedisMirror(self.link, self.database, self.clock, Ids())
        self._links = [self.link]

    @property
    def queue(self) -> ExecutionQueue:
        return RedisQueue(self.link)

    @property
    def truth(self) -> SqlQueue:
        return SqlQueue(self.database, self.clock)

    @property
    def pair(self) -> "Pair":
        return Pair(self.truth, RedisQueue(self.link))

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        assert await self.mirror.ensure()
        return self

    async def __aexit__(self, *_: object) -> None:
        for link in self._links:
            await link.close()
        await super().__aexit__()

    async def client(self) -> ExecutionQueue:
        return RedisQueue(self.new_link())

    def new_link(self, url: str | None = None) -> RedisLink:
        link = RedisLink(url or self.url, self.clock, self.timeout)
        self._links.append(link)
        return link

    async def restart(self) -> None:
        await super().restart()
        self.link = self.new_link()
        self.mirror = RedisMirror(self.link, self.database, self.clock, Ids())

    async def lose_everything(self) -> None:
        await self.link.command("FLUSHALL")
        await self.restart()
        assert await self.mirror.ensure()

    async def clear(self) -> None:
        await super().clear()
        await self.link.command("FLUSHALL")
        assert await self.mirror.ensure()


class Pair:
    """The database and then Redis, as the flow changes them; both must answer alike."""

    def __init__(self, truth: ExecutionQueue, redis: ExecutionQueue) -> None:
        self._truth = truth
        self._redis = redis

    def __getattr__(self, name: str) -> Any:
        async def both(*arguments: Any) -> Any:
            expected = await getattr(self._truth, name)(*arguments)
            found = await getattr(self._redis, name)(*arguments)
            assert found == expected, f"{name}{arguments}: Redis {found}, database {expected}"
            return found

        return both


async def order_of(queue: ExecutionQueue, lane: LaneId | None) -> list[ExecutionId]:
    """Everyone who waits there, taken in turn."""
    found: list[ExecutionId] = []
    while (item := await queue.try_schedule(None, lane)) is not None:
        found.append(item.execution)
    return found


def ids(items: Sequence[QueueItem]) -> list[ExecutionId]:
    return [item.execution for item in items]


async def eventually(ask: Callable[[], Awaitable[T | None]], timeout: float = 20.0) -> T:
    """The first answer that is not empty."""
    deadline = time.monotonic() + timeout
    while not (found := await ask()):
        if time.monotonic() > deadline:
            raise NotInTime(f"{ask}: not within {timeout:g} s")
        await asyncio.sleep(0.02)
    return found
