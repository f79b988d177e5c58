"""The executor: one processor for each kind of message, all over the same flow."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from attune.bus.port import Bus
from attune.bus.topology import StageQueue
from attune.kernel.envelope import Envelope
from attune.kernel.ids import EnforcementId, EventId, ExecutionId
from attune.kernel.messages import ExecutionRequested, Payload
from attune.pipeline.flow import Flow
from attune.pipeline.processors import looks
from attune.pipeline.processors.processor import Look, Processor, Task
from attune.pipeline.workers.probes import answered
from attune.store.database import Step

if TYPE_CHECKING:  # only where Redis keeps the queues is its client loaded
    from attune.pipeline.processors.proposals import Proposals

# Attune's own processes have done what their messages tell of in the commit behind them. What they could not do they ask for:
# a request without an action's ref is not of a new execution, but of one that stands ready.
_API: Final = "api@"
_API_AND_WORKERS: Final = (_API, "worker:")
_OF_ENDS: Final = frozenset({StageQueue.EXECUTION_STATUS, StageQueue.EXECUTION_COMPLETED})
_OF_EXECUTIONS: Final = _OF_ENDS | {StageQueue.EXECUTION_REQUESTED}

_log = structlog.get_logger()


class Executor:
    """Makes the processors of one process."""

    def __init__(self, flow: Flow, bus: Bus, proposals: "Proposals | None" = None) -> None:
        self._flow = flow
        self._bus = bus
        self._proposals = proposals
        self._own = flow.mail.source

    def processors(self) -> list[Processor]:
        return [
            self._processor("event processor", StageQueue.EVENT_CREATED, self._events()),
            self._processor(
                "enforcement processor", StageQueue.ENFORCEMENT_CREATED, self._enforcements()
            ),
            self._processor(
                "execution scheduler", StageQueue.EXECUTION_REQUESTED, self._requests()
            ),
            self._processor("execution manager", StageQueue.EXECUTION_STATUS, self._ended()),
            self._processor("completion listener", StageQueue.EXECUTION_COMPLETED, self._ended()),
            self._processor("worker listener", StageQueue.WORKER_REGISTERED, self._workers()),
            self._processor("worker farewells", StageQueue.WORKER_STOPPED, self._workers()),
            self._processor("worker answers", StageQueue.WORKER_PROBED, self._answers()),
        ]

    def _processor(self, name: str, queue: StageQueue, task: Task) -> Processor:
        """A queue outside the database was told nothing yet, so for it everything counts."""
        if self._proposals is not None and queue in _OF_EXECUTIONS:
            return Processor(name, self._bus, queue.value, task)
        others = _API_AND_WORKERS if queue in _OF_ENDS else _API
        return Processor(name, self._bus, queue.value, task, partial(self._is_done, others))

    def _is_done(self, others: str | tuple[str, ...], envelope: Envelope) -> bool:
        if envelope.source == self._own:
            return True
        return envelope.source.startswith(others) and not any(map(_asks, envelope.items))

    def _events(self) -> Task:
        async def work(ids: Sequence[int]) -> None:
            await self._flow.process_events([EventId(each) for each in ids])

        return Task("event", _field("event_id"), self._look(looks.unprocessed_events), work)

    def _enforcements(self) -> Task:
        async def work(ids: Sequence[int]) -> None:
            await self._flow.process_enforcements([EnforcementId(each) for each in ids])

        look = self._look(looks.created_enforcements)
        return Task("enforcement", _field("enforcement_id"), look, work)

    def _requests(self) -> Task:
        if (proposals := self._proposals) is not None:
            return self._proposed(proposals)

        async def work(_ids: Sequence[int]) -> None:
            await self._flow.schedule()

        return Task("execution", _field("execution_id"), self._look(looks.ready_executions), work)

    def _proposed(self, proposals: "Proposals") -> Task:
        async def tell(ids: Sequence[int]) -> None:
            await proposals.tell([ExecutionId(each) for each in ids])

        return Task("execution", _field("execution_id"), self._look(looks.executions), tell)

    def _ended(self) -> Task:
        """A message about an end, true or false, frees nothing: the slot went with the row that ended.

        What it can do is to hurry an execution that stands ready, so that is what it is read for.
        """
        return self._requests()

    def _workers(self) -> Task:
        async def work(_ids: Sequence[int]) -> None:
            await self._flow.schedule()

        return Task("worker", _field("worker_id"), self._look(looks.workers), work)

    def _answers(self) -> Task:
        async def work(ids: Sequence[int]) -> None:
            now = self._flow.clock.now()
            if recovered := await self._flow.database.run(answered, ids, now):
                _log.info("Workers answer again.", workers=recovered)
                await self._flow.schedule()

        return Task("worker", _field("worker_id"), self._look(looks.workers), work)

    def _look(self, step: Step[[Collection[int]], dict[int, bool]]) -> Look:
        async def look(ids: Collection[int]) -> Mapping[int, bool]:
            return await self._flow.database.read(step, ids)

        return look


def _asks(item: Payload) -> bool:
    return isinstance(item, ExecutionRequested) and not item.action_ref


def _field(name: str) -> Any:
    """The id that an item carries under this name."""

    def id_of(item: Any) -> int:
        return int(getattr(item, name))

    return id_of
