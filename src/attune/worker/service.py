"""The worker: comes, takes what it is handed, tells what became of it, and goes without leaving anything behind."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from attune.bus.port import Bus, Subscription
from attune.bus.topology import Queue
from attune.catalog.model import ActionDefinition
from attune.kernel.batching import Batcher
from attune.kernel.envelope import Envelope
from attune.kernel.errors import AttuneError, Conflict
from attune.kernel.ids import ActionDefinitionId, ExecutionId
from attune.kernel.messages import ExecutionCancel, ExecutionScheduled, MessageType, WorkerChanged
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.flow import Flow
from attune.pipeline.workers import steps as workers
from attune.pipeline.workers.model import Worker, WorkerStatus
from attune.worker.handoffs import hand_offs, holdings
from attune.worker.jobs import Jobs

_TELL_AFTER: Final = (
    0.1  # an action that ends sooner is never reported as running: its end tells it
)

_log = structlog.get_logger()


@dataclass(frozen=True)
class Rhythm:
    """Seconds: between heartbeats, between looks at the rows, and to finish what runs when told to stop."""

    heartbeat: float = 10.0
    look: float = 10.0
    shutdown: float = 30.0


class WorkerService:
    """One worker's life. `register` comes first, because its id names the queue and stands in every report."""

    name = "worker"

    def __init__(
        self,
        flow: Flow,
        bus: Bus,
        jobs: Jobs,
        worker: Worker,
        queue: Queue,
        rhythm: Rhythm,
    ) -> None:
        self._flow = flow
        self._bus = bus
        self._jobs = jobs
        self._worker = worker
        self._queue = queue
        self._rhythm = rhythm
        self._clock = flow.clock
        self._taking: Batcher[list[ExecutionId], None] = Batcher("hand-offs", self._take)
        self._subscription: Subscription | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._handovers: set[asyncio.Task[None]] = set()

    async def start(self) -> asyncio.Task[None]:
        await self._bus.declare(self._queue)
        self._subscription = await self._bus.consume(self._queue.name, self.handle)
        self._jobs.reports.on_handed = self._handed
        self._announce(MessageType.WORKER_REGISTERED)
        living = asyncio.create_task(self._beat(), name="worker's heartbeat")
        self._tasks = [
            living,
            asyncio.create_task(self._look(), name="worker's look at its rows"),
            asyncio.create_task(self._tell(), name="worker's reports"),
        ]
        _log.info("The worker is ready.", worker=self._worker.name, worker_id=self._worker.id)
        return living

    async def stop(self) -> None:
        """Take nothing new, finish what runs, hand back the rest."""
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        await self._set_status(WorkerStatus.INACTIVE)
        await subscription.cancel()
        await self._taking.stop()
        await self._finish()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._announce(MessageType.WORKER_STOPPED)

    async def handle(self, envelope: Envelope) -> None:
        match envelope.message_type:
            case MessageType.EXECUTION_SCHEDULED:
                await self._taking.submit(self._unbegun(envelope))
            case MessageType.EXECUTION_CANCEL:
                for item in envelope.items:
                    if isinstance(item, ExecutionCancel):
                        self._jobs.cancel(item.execution_id, item.attempt)
            case _:
                _log.debug("A message is not for workers.", message_type=envelope.message_type)

    def _unbegun(self, envelope: Envelope) -> list[ExecutionId]:
        orders = [item for item in envelope.items if isinstance(item, ExecutionScheduled)]
        return [
            order.execution_id
            for order in orders
            if not self._jobs.holds(order.execution_id, order.attempt)
        ]

    def _handed(self, ids: Sequence[ExecutionId]) -> None:
        """What an end has made room for begins without waiting for its message."""
        if ids:
            taking = asyncio.create_task(self._taking.submit(list(ids)))
            self._handovers.add(taking)
            taking.add_done_callback(self._taken)

    def _taken(self, taking: asyncio.Task[None]) -> None:
        self._handovers.discard(taking)
        if not taking.cancelled() and (error := taking.exception()):
            _log.warning("A hand-off waits for its message.", error=str(error))

    async def _take(self, batches: list[list[ExecutionId]]) -> list[Exception | None]:
        if ids := list(dict.fromkeys(each for batch in batches for each in batch)):
            await self._begin(ids)
        return [None] * len(batches)

    async def _begin(self, ids: Sequence[ExecutionId]) -> None:
        """The rows say whether these are still ours; what has begun already stays as it is."""
        database = self._flow.database
        found = await database.read(hand_offs, self._worker.id, ids)
        definitions = await self._definitions({one.definition for one in found})
        order = {execution: number for number, execution in enumerate(ids)}
        for one in sorted(found, key=lambda one: order[one.execution]):
            self._jobs.begin(one, definitions[one.definition])

    async def _definitions(
        self, ids: set[ActionDefinitionId]
    ) -> Mapping[ActionDefinitionId, ActionDefinition]:
        known = self._flow.definitions.known(ids)
        if known is not None:
            return known
        return await self._flow.database.read(self._flow.definitions.get, ids)

    async def look(self) -> None:
        """What no message told of: hand-offs and wishes to cancel that are in the rows alone."""
        held = await self._flow.database.read(holdings, self._worker.id)
        for one in held:
            if one.canceling:
                self._jobs.cancel(one.execution, one.attempt)
        unknown = [
            one.execution for one in held if not self._jobs.holds(one.execution, one.attempt)
        ]
        if unknown:
            await self._begin(unknown)

    async def _look(self) -> None:
        while True:
            try:
                await self.look()
            except AttuneError as error:
                _log.warning("The worker could not look at its rows.", error=str(error))
            await self._clock.sleep(self._rhythm.look)

    async def _beat(self) -> None:
        """Ends only when another process has taken this worker's name: then this one must not go on."""
        while True:
            await self._clock.sleep(self._rhythm.heartbeat)
            try:
                await self._flow.database.run(
                    workers.beat, self._worker.id, self._worker.incarnation, self._clock.now()
                )
            except Conflict:
                raise
            except AttuneError as error:
                _log.warning("A heartbeat was missed.", error=str(error))

    async def _tell(self) -> None:
        while True:
            await self._clock.sleep(_TELL_AFTER)
            if started := self._jobs.untold():
                await self._jobs.reports.running(started)

    async def _finish(self) -> None:
        """What does not end in time is taken back first, so that its end cannot count, and then stopped."""
        try:
            async with asyncio.timeout(self._rhythm.shutdown):
                await self._jobs.finished()
        except TimeoutError:
            worker = self._worker
            lost = LostWorker(worker.id, worker.name, worker.cordoned)
            count = await self._flow.take_back(lost, "was stopped")
            _log.warning("Handed back what did not finish in time.", executions=count)
            self._jobs.cancel_all()
            await self._jobs.finished()

    async def _set_status(self, status: WorkerStatus) -> None:
        try:
            await self._flow.database.run(
                workers.set_status,
                self._worker.id,
                self._worker.incarnation,
                status,
                self._clock.now(),
            )
        except AttuneError as error:
            _log.warning("The worker could not sign off.", error=str(error))

    def _announce(self, kind: MessageType) -> None:
        item = WorkerChanged(worker_id=self._worker.id, worker_name=self._worker.name)
        self._flow.mail.send(kind, [item], None)
