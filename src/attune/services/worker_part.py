"""The worker as a part of a process: it comes when the database is there, and goes before it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attune.bus.port import Bus
from attune.bus.topology import worker_queue
from attune.identities.model import TokenType
from attune.identities.tokens import Tokens
from attune.kernel.ids import Ids
from attune.kernel.settings import Settings
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.flow import Flow
from attune.pipeline.workers.model import Registration, Worker, WorkerType
from attune.pipeline.workers.steps import register
from attune.worker.assembly import Places
from attune.worker.detection import supported_runtimes
from attune.worker.handoffs import HandOff
from attune.worker.jobs import Jobs, Workshop
from attune.worker.live_output import LiveOutput
from attune.worker.reports import Reports
from attune.worker.runner import Runner
from attune.worker.service import Rhythm, WorkerService

_TOKEN_SECONDS = 24 * 3600


@dataclass(frozen=True)
class WorkerBase:
    """What a worker is made from. `environment` is the process's own; `name` names it among all workers."""

    settings: Settings
    flow: Flow
    bus: Bus
    ids: Ids
    tokens: Tokens
    name: str
    host: str
    environment: Mapping[str, str]
    api_url: Callable[[], str | None]


class WorkerPart:
    name = "worker"

    def __init__(self, base: WorkerBase) -> None:
        self._base = base
        self._output = LiveOutput(base.flow.database, base.flow.clock)
        self._service: WorkerService | None = None

    @property
    def source(self) -> str:
        return self._base.flow.mail.source

    async def start(self) -> asyncio.Task[None]:
        """What an earlier process of this name held is taken back first: nobody is working on it any more."""
        base = self._base
        worker = await base.flow.database.run(register, self._registration(), base.flow.clock.now())
        lost = LostWorker(worker.id, worker.name, worker.cordoned)
        await base.flow.take_back(lost, "was started anew")
        self._service = self._made(worker)
        return await self._service.start()

    async def stop(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            await service.stop()
            await self._output.stop()

    def _made(self, worker: Worker) -> WorkerService:
        base, settings = self._base, self._base.settings
        queue = worker_queue(
            worker.id,
            ttl_seconds=settings.executor.worker_queue_ttl,
            executions=settings.message_queue.exchange,
        )
        rhythm = Rhythm(
            heartbeat=settings.worker.heartbeat_interval,
            shutdown=settings.worker.shutdown_timeout,
        )
        return WorkerService(base.flow, base.bus, self._jobs(worker), worker, queue, rhythm)

    def _jobs(self, worker: Worker) -> Jobs:
        base, data_dir = self._base, self._base.settings.data_dir
        clock = base.flow.clock
        places = Places(data_dir / "packs", data_dir / "work", data_dir / "artifacts")
        return Jobs(
            Workshop(
                runner=Runner(clock=clock, environment=base.environment),
                reports=Reports(base.flow, worker.id, clock),
                output=self._output,
                places=places,
                clock=clock,
                api_url=base.api_url,
                token_for=self._token_for,
            )
        )

    def _registration(self) -> Registration:
        base, settings = self._base, self._base.settings.worker
        return Registration(
            name=base.name,
            capacity=settings.capacity,
            supported_runtimes=supported_runtimes(base.environment.get("PATH", "")),
            incarnation=base.ids.token(size=16),
            host=base.host,
            labels=settings.labels,
            worker_type=WorkerType(settings.type.value),
            taints=[taint.model_dump(exclude_none=True) for taint in settings.taints],
        )

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
