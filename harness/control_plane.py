"""The whole control plane in this process, over a real database and a real bus: for tests and benchmarks."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Self, TypeVar

from pydantic import SecretStr

from attune.bus.announcer import Announcer
from attune.bus.opening import bus_from
from attune.catalog.packs import PackInstaller
from attune.identities.tokens import Tokens
from attune.kernel.clock import Clock, SystemClock
from attune.kernel.duty import Duty
from attune.kernel.envelope import Stamp
from attune.kernel.ids import Ids
from attune.kernel.settings import QueueBackend, Settings
from attune.kernel.statuses import TERMINAL
from attune.pipeline.executions.model import Execution, Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.executions.steps import get_execution
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Mail
from attune.pipeline.processors.executor import Executor
from attune.pipeline.processors.fallback import Fallback, FallbackConfig
from attune.pipeline.processors.gate_keeper import GateKeeper
from attune.pipeline.processors.proposals import Proposals, ProposalsConfig
from attune.pipeline.processors.woken import DueConfig
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.mirror import RedisMirror
from attune.pipeline.queues.redis.queue import RedisQueue
from attune.pipeline.scheduling.hatch import Hatch
from attune.pipeline.scheduling.model import Terms
from attune.services.worker_part import WorkerBase, WorkerPart
from attune.store import migrate
from attune.store.database import Tx
from attune.store.opening import database_from
from harness.waiting import NotInTime

T = TypeVar("T")


async def eventually(
    ask: Callable[[], Awaitable[T | None]], *, timeout: float = 30.0, interval: float = 0.02
) -> T:
    """The first answer that is not empty."""
    deadline = time.monotonic() + timeout
    while not (found := await ask()):
        if time.monotonic() > deadline:
            raise NotInTime(f"{ask}: not within {timeout:g} s")
        await asyncio.sleep(interval)
    return found


class ControlPlane:
    """`through` fuses the stages, as in `attune up`; without it each arrow needs its message."""

    def __init__(
        self, settings: Settings, *, through: bool = True, clock: Clock | None = None
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.ids = Ids()
        self.database = database_from(settings, self.clock, random.Random(1))  # noqa: S311
        self.bus = bus_from(settings.message_queue, self.clock, random.Random(2))  # noqa: S311
        self.announcer = Announcer(self.bus, self.clock)
        self.hatch = Hatch()
        self.flow = self.new_flow("test", through=through)
        self.executor_flow = self.flow if through else self.new_flow("executor", through=True)
        self._stack = AsyncExitStack()

    def new_flow(self, source: str, *, through: bool, **terms: Any) -> Flow:
        stamp = Stamp(source, self.clock, self.ids)
        mail = Mail(self.announcer, stamp, acted_on=self._queue_terms().deferred)
        found = Terms(**{"stale": timedelta(seconds=30), "queue": self._queue_terms(), **terms})
        flow = Flow(self.database, self.clock, mail, found, through=through)
        flow.scheduler.hatch = self.hatch
        return flow

    def _queue_terms(self) -> QueueTerms:
        queue = self.settings.executor.queue
        return QueueTerms(
            max_queue_length=queue.max_queue_length,
            timeout_seconds=queue.queue_timeout_seconds,
            deferred=queue.backend is QueueBackend.REDIS,
        )

    async def __aenter__(self) -> Self:
        await migrate.upgrade(self.settings.database_url)
        await self.database.open()
        self._stack.push_async_callback(self.database.close)
        await self.bus.start()
        self._stack.push_async_callback(self.bus.close)
        self._stack.push_async_callback(self.announcer.stop)
        self.installer = PackInstaller(self.database, self.clock, self.settings.data_dir / "packs")
        await self.installer.install_core()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def start_executor(self, *, fallback: float = 3600) -> None:
        """Its fallback is far away, so that what a test sees came of messages."""
        flow, proposals = self.executor_flow, self._proposals(fallback)
        for processor in Executor(flow, self.bus, proposals).processors():
            await processor.start()
            self._stack.push_async_callback(processor.stop)
        duties: list[Duty[Any]] = [
            *([proposals] if proposals else []),
            Fallback(self.executor_flow, self.clock, FallbackConfig(interval=fallback)),
            GateKeeper(self.executor_flow, self.clock, DueConfig(interval=fallback)),
        ]
        for duty in duties:
            await duty.start()
            self._stack.push_async_callback(duty.stop)

    def _proposals(self, fallback: float) -> Proposals | None:
        """Where the settings want queues in Redis."""
        url = self.settings.redis.url
        if self.settings.executor.queue.backend is not QueueBackend.REDIS or url is None:
            return None
        link = RedisLink(url.get_secret_value(), self.clock)
        self._stack.push_async_callback(link.close)
        mirror = RedisMirror(link, self.database, self.clock, self.ids)
        config = ProposalsConfig(interval=fallback)
        return Proposals(self.executor_flow, RedisQueue(link), mirror, self.clock, config)

    def worker(self, name: str = "local", **settings: Any) -> WorkerPart:
        worker = self.settings.worker.model_copy(
            update={"capacity": 10, "shutdown_timeout": 1.0, **settings}
        )
        return WorkerPart(
            WorkerBase(
                settings=self.settings.model_copy(update={"worker": worker}),
                flow=self.new_flow(f"worker:{name}", through=True),
                bus=self.bus,
                ids=self.ids,
                tokens=Tokens(SecretStr("a secret of the tests"), self.clock, self.ids),
                name=name,
                host="test",
                environment={"PATH": os.environ["PATH"]},
                api_url=lambda: None,
            )
        )

    async def start_worker(self, name: str = "local", **settings: Any) -> WorkerPart:
        worker = self.worker(name, **settings)
        await worker.start()
        self._stack.push_async_callback(worker.stop)
        return worker

    async def run(self, action_ref: str, **parameters: Any) -> Execution:
        [execution] = await self.flow.request(
            Order((Request(action_ref=action_ref, parameters=parameters),))
        )
        return execution

    async def over(self) -> None:
        """Return when nothing waits and nothing runs."""

        async def empty() -> bool:
            return bool(await self.value(int, "SELECT count(*) FROM entry") == 0)

        await eventually(empty, timeout=60)

    async def execution(self, execution_id: int) -> Execution:
        return await self.database.read(get_execution, execution_id)

    async def ended(self, execution_id: int) -> Execution:
        async def terminal() -> Execution | None:
            found = await self.execution(execution_id)
            return found if found.status in TERMINAL else None

        return await eventually(terminal, interval=0)

    async def value(self, kind: type, sql: str, **parameters: Any) -> Any:
        async def ask(tx: Tx) -> Any:
            return await tx.first(kind, sql, **parameters)

        return await self.database.read(ask)

    async def values(self, kind: type, sql: str, **parameters: Any) -> list[Any]:
        async def ask(tx: Tx) -> list[Any]:
            return await tx.all(kind, sql, **parameters)

        return await self.database.read(ask)

    async def execute(self, sql: str, **parameters: Any) -> int:
        async def change(tx: Tx) -> int:
            return await tx.execute(sql, **parameters)

        return await self.database.run(change)
