"""What a worker has in its hands: each attempt at most once, from its start to its written end."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import structlog

from attune.catalog.model import ActionDefinition
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Ended, Started
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.scheduling.hand_off import HandOff
from attune.worker.assembly import assembled, encoded
from attune.worker.errors import CannotRun
from attune.worker.model import Outcome, Run
from attune.worker.reports import Reports
from attune.worker.workshop import Workshop

Key = tuple[ExecutionId, int]
K = TypeVar("K")

_REMEMBERED: Final = 100_000

_log = structlog.get_logger()


@dataclass(slots=True)
class Job:
    """`over` once the action has ended, while its end may still have to be written; `void` when nobody wants that."""

    started_at: datetime
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    seen: bool = False
    told: bool = False
    over: bool = False
    void: bool = False
    task: "asyncio.Future[None] | None" = None


class Jobs:
    def __init__(self, workshop: Workshop) -> None:
        self._shop = workshop
        self._jobs: dict[Key, Job] = {}
        self._begun: OrderedDict[Key, None] = OrderedDict()
        self._cancelled: OrderedDict[tuple[ExecutionId, int | None], None] = OrderedDict()

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
        _remember(self._begun, key)
        job = self._jobs[key] = Job(self._shop.clock.now())
        cancelled = key in self._cancelled or (hand_off.execution, None) in self._cancelled
        if cancelled or hand_off.status is ExecutionStatus.CANCELING:
            job.cancel.set()
        run = self._prepared(hand_off, definition)
        if isinstance(run, Ended):
            self._write(key, job, run)
        elif ended := self._at_once(job, hand_off, run):
            self._write(key, job, ended)
        else:
            job.task = asyncio.create_task(self._do(key, job, hand_off, run))

    def cancel(self, execution: ExecutionId, attempt: int | None = None) -> None:
        """Also one that begins later: its rows may have been read before they told of the cancel."""
        found = [
            job
            for (held, number), job in self._jobs.items()
            if held == execution and attempt in (None, number)
        ]
        for job in found:
            job.cancel.set()
        if not found:
            _remember(self._cancelled, (execution, attempt))

    def running(self) -> frozenset[Key]:
        """The attempts whose action has not ended."""
        return frozenset(key for key, job in self._jobs.items() if not job.over)

    def revoke(self, keys: Iterable[Key]) -> None:
        """End these attempts, with all their processes, and write nothing of them: they are not ours any more."""
        for key in keys:
            job = self._jobs.get(key)
            if job is None or job.over or job.void:
                continue
            job.void = True
            job.cancel.set()
            _log.warning("Fenced: an attempt is ended.", execution_id=key[0], attempt=key[1])

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

    def tell_again(self, keys: Iterable[Key]) -> None:
        """These are not known to run, though that was reported if it is so: the report did not arrive."""
        for key in keys:
            if (job := self._jobs.get(key)) is not None:
                job.told = False

    async def finished(self) -> None:
        """Return when every job has ended and its end is written."""
        while tasks := self._tasks(self._jobs):
            await asyncio.wait(tasks)

    async def ended(self, keys: Collection[Key], patience: float) -> bool:
        """Whether the actions of these revoked attempts have ended within so many seconds."""
        tasks = self._tasks(keys)
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=patience)
        return not pending

    def _tasks(self, keys: Iterable[Key]) -> list["asyncio.Future[None]"]:
        jobs = (self._jobs[key] for key in keys if key in self._jobs)
        return [job.task for job in jobs if job.task is not None]

    def _prepared(self, hand_off: HandOff, definition: ActionDefinition) -> Run | Ended:
        shop = self._shop
        try:
            return assembled(hand_off, definition, shop.places, shop.api_url(), shop.token_for)
        except CannotRun as error:
            return _unrun(hand_off, error.message)
        except Exception as error:  # noqa: BLE001 - the edge: an execution must end even by a fault of ours
            _log.exception("An action could not be prepared.", execution_id=hand_off.execution)
            return _unrun(
                hand_off, f"Attune failed to prepare the action ({type(error).__name__})."
            )

    def _at_once(self, job: Job, hand_off: HandOff, run: Run) -> Ended | None:
        """The end of what has nothing to wait for: it needs no task."""
        if job.cancel.is_set():
            return None
        on_output = self._shop.output.of(hand_off.execution, hand_off.attempt)
        outcome = self._shop.runner.run_at_once(run, on_output=on_output)
        return None if outcome is None else self._ended(hand_off, outcome)

    async def _do(self, key: Key, job: Job, hand_off: HandOff, run: Run) -> None:
        try:
            on_output = self._shop.output.of(*key)
            outcome = await self._shop.runner.run(run, cancel=job.cancel, on_output=on_output)
            ended = self._ended(hand_off, outcome)
            job.over = True
            if not job.void:
                await self._shop.reports.ended(ended)
        except Exception:  # noqa: BLE001 - the edge of a task that nobody awaits
            _log.exception("An execution was lost sight of.", execution_id=hand_off.execution)
        finally:
            del self._jobs[key]

    def _ended(self, hand_off: HandOff, outcome: Outcome) -> Ended:
        chatty = self._shop.output.forget(hand_off.execution, hand_off.attempt)
        result = encoded(outcome.result)
        return _end(hand_off, outcome.status, result, outcome.started_at, chatty=chatty)

    def _write(self, key: Key, job: Job, ended: Ended) -> None:
        job.over = True
        job.task = self._shop.reports.ended(ended)
        job.task.add_done_callback(partial(self._written, key))

    def _written(self, key: Key, writing: "asyncio.Future[None]") -> None:
        del self._jobs[key]
        if not writing.cancelled() and (error := writing.exception()):
            _log.error("An execution was lost sight of.", execution_id=key[0], exc_info=error)


def _remember(known: OrderedDict[K, None], key: K) -> None:
    """The oldest are forgotten: nobody reads rows for as long as it takes to run so many others.

    A plain dict passes all that left it on its way to the first one.
    """
    known[key] = None
    if len(known) > _REMEMBERED:
        known.popitem(last=False)


def _unrun(hand_off: HandOff, reason: str) -> Ended:
    return _end(hand_off, ExecutionStatus.FAILED, encoded(unrun_result(reason)), None)


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
        action=hand_off.action,
        status=status,
        result=result,
        started_at=started_at,
        chatty=chatty,
    )
