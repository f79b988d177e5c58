"""The worker: comes, takes what it is handed, tells what became of it, and goes without leaving anything behind."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from attune.bus.port import Bus, Subscription
from attune.bus.topology import Queue
from attune.kernel.clock import Clock
from attune.kernel.duty import Duty, DutyConfig
from attune.kernel.envelope import Envelope
from attune.kernel.ids import ExecutionId
from attune.kernel.messages import (
    ExecutionCancel,
    MessageType,
    WorkerChanged,
    WorkerProbe,
)
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.flow import Flow
from attune.pipeline.workers.model import Worker
from attune.worker.handoffs import holdings
from attune.worker.heartbeat import Heartbeat
from attune.worker.intake import Intake
from attune.worker.jobs import Jobs
from attune.worker.leaving import Leaving, in_time

_TELL_AFTER: Final = (
    0.1  # an action that ends sooner is never reported as running: its end tells it
)
_MOMENT: Final = 1.0
# Nobody wakes this topic. Whoever listens to it hears when the database was away, and what it did in between
# may have been told to nobody.
_NEWS: Final = "worker's rows"

_log = structlog.get_logger()


@dataclass(frozen=True)
class Rhythm:
    """Seconds: between looks at the rows, and to finish what runs when told to stop."""

    look: float = 10.0
    shutdown: float = 30.0

    @property
    def first_steps(self) -> float:
        """For each of the writes before that, which come first and are quick unless a server is away."""
        return min(self.shutdown / 6, 5.0)


class _Looking(Duty[DutyConfig]):
    name = "worker's look at its rows"

    def __init__(
        self, look: Callable[[], Awaitable[None]], clock: Clock, config: DutyConfig
    ) -> None:
        super().__init__(config, clock)
        self._look = look

    async def run_once(self) -> None:
        await self._look()


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
        heartbeat: Heartbeat,
        rhythm: Rhythm,
    ) -> None:
        self._flow = flow
        self._bus = bus
        self._jobs = jobs
        self._worker = worker
        self._queue = queue
        self._heartbeat = heartbeat
        self._rhythm = rhythm
        self._clock = flow.clock
        self._going = Leaving(flow, jobs, worker)
        self._intake = Intake(flow, jobs, worker)
        self._subscription: Subscription | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._deaf: Callable[[], None] = lambda: None
        self._looking = _Looking(self.look, self._clock, DutyConfig(interval=rhythm.look))

    @property
    def is_stopping(self) -> bool:
        return self._intake.closed

    async def start(self) -> asyncio.Task[None]:
        """The task that is returned ends when another process has taken this worker's name."""
        await self._bus.declare(self._queue)
        self._subscription = await self._bus.consume(self._queue.name, self.handle)
        self._jobs.reports.on_handed = self._intake.handed
        self._jobs.reports.on_void = self._jobs.revoke
        self._heartbeat.on_back = self._back
        self._deaf = self._flow.database.listen(_NEWS, lambda _key: self._looking.hurry())
        living = await self._heartbeat.start()
        self._announce(MessageType.WORKER_REGISTERED)
        self._tasks = [
            living,
            await self._looking.start(),
            asyncio.create_task(self._tell(), name="worker's reports"),
        ]
        _log.info("The worker is ready.", worker=self._worker.name, worker_id=self._worker.id)
        return living

    async def stop(self) -> None:
        """Inactive first, so that nobody hands it anything; then finish what runs, and hand back the rest.

        One that was replaced touches no row: they are the other's. Its own attempts count no more.
        """
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        self._intake.closed = True
        self._deaf()
        deadline = self._clock.monotonic() + self._rhythm.shutdown
        await self._heartbeat.leave(self._rhythm.first_steps)
        await in_time(subscription.cancel(), self._rhythm.first_steps, "leave its queue")
        undone = await self._go(deadline)
        await self._heartbeat.stop(undone)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=_MOMENT)
        self._announce(MessageType.WORKER_STOPPED)

    async def _go(self, deadline: float) -> str | None:
        if self._heartbeat.is_replaced:
            await self._going.end()
            return "replaced"
        await in_time(self.look(), self._rhythm.first_steps, "look at its rows")
        await self._going.hand_back_unbegun(self._rhythm.first_steps)
        undone = await self._going.finish(deadline - self._clock.monotonic())
        if not self._heartbeat.has_left:
            await self._going.hand_back_unbegun(_MOMENT)
        return undone

    async def handle(self, envelope: Envelope) -> None:
        match envelope.message_type:
            case MessageType.EXECUTION_SCHEDULED:
                await self._intake.order(envelope.items)
            case MessageType.EXECUTION_CANCEL:
                for item in envelope.items:
                    if isinstance(item, ExecutionCancel):
                        self._jobs.cancel(item.execution_id, item.attempt)
            case MessageType.WORKER_PROBE:
                self._answer(envelope)
            case _:
                _log.debug("A message is not for workers.", message_type=envelope.message_type)

    def _answer(self, envelope: Envelope) -> None:
        """The question comes back as it is: that it went through this loop is the answer."""
        own = self._worker.id
        items = [each for each in envelope.items if isinstance(each, WorkerProbe)]
        self._flow.mail.send(
            MessageType.WORKER_PROBED, [each for each in items if each.worker_id == own]
        )

    async def look(self) -> None:
        """What no message told of: hand-offs, wishes to cancel, reports that failed, and attempts that others have now.

        An attempt that ran before the rows were read, runs after it and is not among them is not ours any more.
        """
        running = self._jobs.running()
        held = await self._flow.database.read(holdings, self._worker)
        self._jobs.revoke(running - {one.key for one in held})
        self._jobs.tell_again(one.key for one in held if one.status is ExecutionStatus.SCHEDULED)
        for one in held:
            if one.status is ExecutionStatus.CANCELING:
                self._jobs.cancel(one.execution, one.attempt)
        unknown = [
            one.execution for one in held if not self._jobs.holds(one.execution, one.attempt)
        ]
        if unknown:
            await self._begin(unknown)

    async def _begin(self, ids: Sequence[ExecutionId]) -> None:
        await self._intake.begin(ids)

    def _back(self) -> None:
        """It was given up for lost, so others may have its work; and there may be more for it."""
        self._looking.hurry()
        self._announce(MessageType.WORKER_REGISTERED)

    async def _tell(self) -> None:
        while True:
            await self._clock.sleep(_TELL_AFTER)
            if started := self._jobs.untold():
                await self._jobs.reports.running(started)

    def _announce(self, kind: MessageType) -> None:
        item = WorkerChanged(worker_id=self._worker.id, worker_name=self._worker.name)
        self._flow.mail.send(kind, [item])
