"""What a worker has in its hands: each attempt at most once, from its start to its written end."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from attune.catalog.model import ActionDefinition
from attune.kernel.clock import Clock
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Ended, Started
from attune.pipeline.executions.decide import unrun_result
from attune.worker.assembly import Places, assembled, encoded
from attune.worker.errors import CannotRun
from attune.worker.handoffs import HandOff
from attune.worker.live_output import LiveOutput
from attune.worker.reports import Reports
from attune.worker.runner import Runner

Key = tuple[ExecutionId, int]

_REMEMBERED: Final = 100_000

_log = structlog.get_logger()


@dataclass
class Job:
    started_at: datetime
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    seen: bool = False
    told: bool = False
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True)
class Workshop:
    """What every job uses."""

    runner: Runner
    reports: Reports
    output: LiveOutput
    places: Places
    clock: Clock
    api_url: Callable[[], str | None]
    token_for: Callable[[HandOff], str | None]


class Jobs:
    def __init__(self, workshop: Workshop) -> None:
        self._shop = workshop
        self._jobs: dict[Key, Job] = {}
        self._begun: dict[Key, None] = {}

    @property
    def reports(self) -> Reports:
        return self._shop.reports

    def __len__(self) -> int:
        return len(self._jobs)

    def holds(self, execution: ExecutionId, attempt: int) -> bool:
        return (execution, attempt) in self._begun

    def begin(self, hand_off: HandOff, definition: ActionDefinition) -> None:
        """Start an attempt, once: also one that has ended since its rows were read is left alone."""
        key = (hand_off.execution, hand_off.attempt)
        if key in self._begun:
            return
        self._remember(key)
        job = self._jobs[key] = Job(self._shop.clock.now())
        if hand_off.status is ExecutionStatus.CANCELING:
            job.cancel.set()
        job.task = asyncio.create_task(self._do(key, job, hand_off, definition))

    def _remember(self, key: Key) -> None:
        """The oldest are forgotten: nobody reads rows for as long as it takes to run so many others."""
        self._begun[key] = None
        if len(self._begun) > _REMEMBERED:
            del self._begun[next(iter(self._begun))]

    def cancel(self, execution: ExecutionId, attempt: int | None = None) -> bool:
        """Whether there was something to cancel."""
        found = [
            job
            for (held, number), job in self._jobs.items()
            if held == execution and attempt in (None, number)
        ]
        for job in found:
            job.cancel.set()
        return bool(found)

    def cancel_all(self) -> None:
        for job in self._jobs.values():
            job.cancel.set()

    def untold(self) -> list[Started]:
        """Those that have run for a while and that nobody was told of; they count as told from now on.

        A job is passed over once: one that ends soon is told by its end.
        """
        found: list[Started] = []
        for (execution, attempt), job in self._jobs.items():
            if not job.seen:
                job.seen = True
            elif not job.told and not job.cancel.is_set():
                job.told = True
                found.append(Started(execution, attempt, job.started_at))
        return found

    async def finished(self) -> None:
        """Return when every job has ended and its end is written."""
        while tasks := [job.task for job in self._jobs.values() if job.task is not None]:
            await asyncio.wait(tasks)

    async def _do(
        self, key: Key, job: Job, hand_off: HandOff, definition: ActionDefinition
    ) -> None:
        try:
            ended = await self._ended(job, hand_off, definition)
            await self._shop.reports.ended(ended)
        except Exception:  # noqa: BLE001 - the edge of a task that nobody awaits
            _log.exception("An execution was lost sight of.", execution_id=hand_off.execution)
        finally:
            del self._jobs[key]

    async def _ended(self, job: Job, hand_off: HandOff, definition: ActionDefinition) -> Ended:
        shop = self._shop
        execution, attempt = hand_off.execution, hand_off.attempt
        try:
            run = assembled(hand_off, definition, shop.places, shop.api_url(), shop.token_for)
        except CannotRun as error:
            return _end(
                hand_off, ExecutionStatus.FAILED, encoded(unrun_result(error.message)), None
            )
        on_output = shop.output.of(execution, attempt)
        outcome = await shop.runner.run(run, cancel=job.cancel, on_output=on_output)
        chatty = shop.output.forget(execution, attempt)
        result = encoded(outcome.result)
        return _end(hand_off, outcome.status, result, outcome.started_at, chatty=chatty)


def _end(
    hand_off: HandOff,
    status: ExecutionStatus,
    result: bytes,
    started_at: datetime | None,
    *,
    chatty: bool = False,
) -> Ended:
    return Ended(
        execution=hand_off.execution,
        attempt=hand_off.attempt,
        lane=hand_off.lane,
        status=status,
        result=result,
        started_at=started_at,
        chatty=chatty,
    )
