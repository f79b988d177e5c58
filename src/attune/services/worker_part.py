"""The worker as a part of a process: it comes when the database is there, and goes before it."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from attune.bus.port import Bus
from attune.bus.topology import worker_queue
from attune.catalog.model import Runtime
from attune.identities.model import TokenType
from attune.identities.tokens import Tokens
from attune.kernel.ids import Ids
from attune.kernel.settings import Settings
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.flow import Flow
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.workers.model import Registration, RuntimeSupport, Worker
from attune.pipeline.workers.steps import register
from attune.services.worker_health import HealthServer
from attune.store.database import Database, Tx
from attune.store.opening import database_from
from attune.worker.assembly import Places
from attune.worker.detection import Found, found_runtimes, supported_runtimes, supports
from attune.worker.health import Health
from attune.worker.heart_line import Line, OwnLine, SharedLine
from attune.worker.heartbeat import Heartbeat
from attune.worker.jobs import Jobs
from attune.worker.live_output import LiveOutput
from attune.worker.reports import Reports
from attune.worker.runner import Runner
from attune.worker.service import Rhythm, WorkerService
from attune.worker.workshop import Workshop

_TOKEN_SECONDS: Final = 24 * 3600
# The names in this statement are those of our own struct.
_RUNTIMES: Final = f"SELECT {', '.join(Runtime.__struct_fields__)} FROM runtime ORDER BY id"  # noqa: S608


@dataclass(frozen=True)
class WorkerBase:
    """What a worker is made from. `environment` is the process's own; `name` names it among all workers.

    A worker in a process of its own `serves_health`. `asks_versions`: it runs the programs of all runtimes to learn
    their versions, which takes a second or two.
    """

    settings: Settings
    flow: Flow
    bus: Bus
    ids: Ids
    tokens: Tokens
    name: str
    host: str
    environment: Mapping[str, str]
    api_url: Callable[[], str | None]
    asks_versions: bool = False
    serves_health: bool = False


class WorkerPart:
    name = "worker"

    def __init__(self, base: WorkerBase) -> None:
        self._base = base
        self._output = LiveOutput(base.flow.database, base.flow.clock)
        self._runner = Runner(clock=base.flow.clock, environment=base.environment)
        self._programs: dict[str, Found] = {}
        self._service: WorkerService | None = None
        self._health: HealthServer | None = None

    @property
    def health_address(self) -> str | None:
        return None if self._health is None else self._health.address

    async def start(self) -> asyncio.Task[None]:
        """What an earlier process of this name held is taken back first: nobody is working on it any more."""
        base = self._base
        port = await self._serve_health()
        coming = await self._registration(port)
        worker = await base.flow.database.run(register, coming, base.flow.clock.now())
        lost = LostWorker(worker.id, worker.name, worker.cordoned)
        await base.flow.take_back(lost, "was started anew")
        self._service = self._made(worker)
        if base.settings.embedded:  # one process is all there is
            base.flow.scheduler.hatch.open(worker.id)
        return await self._service.start()

    async def stop(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            self._base.flow.scheduler.hatch.close()
            await service.stop()
            await self._output.stop()
        await self._runner.close()
        health, self._health = self._health, None
        if health is not None:
            await health.stop()

    async def _serve_health(self) -> int | None:
        """The port that it has. Where one process is everything, the API's own /health speaks for it."""
        if not self._base.serves_health:
            return None
        self._health = HealthServer(self._base.settings.worker)
        return await self._health.start()

    def _made(self, worker: Worker) -> WorkerService:
        base, settings = self._base, self._base.settings
        queue = worker_queue(
            worker.id,
            ttl_seconds=settings.executor.worker_queue_ttl,
            executions=settings.message_queue.exchange,
        )
        jobs, heartbeat = self._jobs(worker), self._heartbeat(worker)
        rhythm = Rhythm(shutdown=settings.worker.shutdown_timeout)
        service = WorkerService(base.flow, base.bus, jobs, worker, queue, heartbeat, rhythm)
        if self._health is not None:
            database = base.flow.database
            self._health.of = Health(worker, service, jobs, heartbeat, database, base.bus)
        return service

    def _heartbeat(self, worker: Worker) -> Heartbeat:
        flow, interval = self._base.flow, self._base.settings.worker.heartbeat_interval
        stale = flow.terms.stale.total_seconds()
        return Heartbeat(worker, self._line(), flow.clock, interval=interval, stale=stale)

    def _line(self) -> Line:
        """An SQLite file belongs to one object; PostgreSQL gives the heart a connection of its own."""
        base, settings = self._base, self._base.settings
        patience = max(settings.worker.heartbeat_interval / 2, 1.0)
        if settings.embedded:
            return SharedLine(base.flow.database, patience)
        limits = {"max_connections": 1, "connect_timeout": patience, "command_timeout": patience}
        own = settings.model_copy(update={"database": settings.database.model_copy(update=limits)})

        def make() -> Database:
            return database_from(own, base.flow.clock, random.SystemRandom(), hears_wakes=False)

        return OwnLine(make, patience)

    def _jobs(self, worker: Worker) -> Jobs:
        base, data_dir = self._base, self._base.settings.data_dir
        clock = base.flow.clock
        places = Places(
            packs=data_dir / "packs",
            work=data_dir / "work",
            artifacts=data_dir / "artifacts",
            programs=self._programs,
        )
        return Jobs(
            Workshop(
                runner=self._runner,
                reports=Reports(base.flow, worker.id, clock),
                output=self._output,
                places=places,
                clock=clock,
                api_url=base.api_url,
                token_for=self._token_for,
            )
        )

    async def _registration(self, port: int | None) -> Registration:
        base, settings = self._base, self._base.settings.worker
        return Registration(
            name=base.name,
            capacity=settings.capacity,
            supported_runtimes=await self._runtimes(),
            incarnation=base.ids.token(size=16),
            host=base.host,
            port=port,
            labels=settings.labels,
            worker_type=settings.type,
            taints=[taint.model_dump(exclude_none=True) for taint in settings.taints],
        )

    async def _runtimes(self) -> list[RuntimeSupport]:
        path = self._base.environment.get("PATH", "")
        if not self._base.asks_versions:
            return supported_runtimes(path)
        declared = await self._base.flow.database.read(_declared_runtimes)
        found = await found_runtimes(path, declared)
        self._programs = {one.name: one for one in found}
        return supports(found)

    def _token_for(self, hand_off: HandOff) -> str | None:
        """An execution speaks to the API only with the permission sets that it was given, and as no one else."""
        refs = hand_off.permission_set_refs
        if not refs or hand_off.executor is None:
            return None
        pack_ref = hand_off.action_ref.partition(".")[0]
        return self._base.tokens.issue(
            hand_off.executor,
            f"execution:{hand_off.execution}",
            TokenType.EXECUTION,
            _TOKEN_SECONDS,
            scope="execution",
            metadata={
                "execution_id": hand_off.execution,
                "action_ref": hand_off.action_ref,
                "permission_set_refs": refs,
                "standard_access_action_refs": [hand_off.action_ref],
                "standard_access_pack_refs": [pack_ref],
            },
        )


async def _declared_runtimes(tx: Tx) -> list[Runtime]:
    return await tx.all(Runtime, _RUNTIMES)
