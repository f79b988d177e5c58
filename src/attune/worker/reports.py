"""What a worker writes: that attempts run, and how they ended. The end is written whatever the database does."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec
import structlog

from attune.kernel.batching import Batcher
from attune.kernel.clock import Clock
from attune.kernel.errors import AttuneError
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Completed, Ended, Started, Told
from attune.pipeline.completion.steps import complete, report_running
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Outbox
from attune.store.database import FEW, Tx
from attune.worker.assembly import encoded

_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 5.0

_log = structlog.get_logger()


def _nobody(_news: object) -> None:
    """Until the worker listens."""


class Reports:
    """`on_handed` is told what this worker was given in the commit of an end: nobody else tells of it.

    `on_void` is told which attempts count no more: somebody has taken them back, or ended them, while they ran here.
    """

    def __init__(self, flow: Flow, worker: WorkerId, clock: Clock) -> None:
        self.on_handed: Callable[[Completed], None] = _nobody
        self.on_void: Callable[[Collection[tuple[ExecutionId, int]]], None] = _nobody
        self._flow = flow
        self._worker = worker
        self._clock = clock
        self._ends: Batcher[Ended, None] = Batcher("completions", self._complete)

    def ended(self, ended: Ended) -> "asyncio.Future[None]":
        """Done when it is written, however long that takes."""
        return self._ends.put(ended)

    async def running(self, started: Sequence[Started]) -> None:
        """A report that fails is only late: the end tells the same and more."""
        try:
            told = await self._flow.database.jot(self._running_step, started)
        except AttuneError as error:
            _log.warning("Could not report what runs.", error=str(error))
            return
        if void := [(e.execution, e.attempt) for e in started if e.execution in told.void]:
            self.on_void(void)

    async def stop(self) -> None:
        await self._ends.stop()

    async def _complete(self, ended: list[Ended]) -> list[Exception | None]:
        delay, database = _FIRST_DELAY, self._flow.database
        write = database.jot if len(ended) <= FEW else database.run
        while True:
            try:
                completed = await write(self._complete_step, ended)
                self.on_handed(completed)
                _tell_late(completed.late)
                return [None] * len(ended)
            except AttuneError as error:
                if not error.retriable:
                    return await self._complete_apart(ended, error)
                _log.warning("Results wait for the database.", count=len(ended), error=str(error))
            await self._clock.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY)

    async def _complete_apart(
        self, ended: list[Ended], error: AttuneError
    ) -> list[Exception | None]:
        """One of them cannot be stored. It ends as failed, with that reason, and the others as they did."""
        if len(ended) == 1:
            [one] = ended
            _log.error(
                "A result could not be stored.", execution_id=one.execution, error=str(error)
            )
            plain = _unstorable(one)
            return [error] if plain == one else await self._complete([plain])
        return [(await self._complete([one]))[0] for one in ended]

    async def _complete_step(self, tx: Tx, ended: Sequence[Ended]) -> Completed:
        outbox, now = Outbox(tx, self._flow.mail), self._clock.now()
        return await complete(tx, self._flow.scheduler, outbox, self._worker, ended, now)

    async def _running_step(self, tx: Tx, started: Sequence[Started]) -> Told:
        return await report_running(tx, Outbox(tx, self._flow.mail), started)


def _tell_late(late: Collection[ExecutionId]) -> None:
    if late:
        _log.warning(
            "Results came too late: another attempt has the execution.", executions=sorted(late)
        )


def _unstorable(ended: Ended) -> Ended:
    reason = "The result could not be stored; the worker's log has the details."
    failed = ExecutionStatus.FAILED
    return msgspec.structs.replace(ended, status=failed, result=encoded(unrun_result(reason)))
