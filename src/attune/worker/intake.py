"""Hand-offs on their way from a message, an end or a look at the rows to the jobs that they become."""

from collections.abc import Mapping, Sequence

import structlog

from attune.catalog.model import ActionDefinition
from attune.kernel.batching import Batcher
from attune.kernel.ids import ActionDefinitionId, ExecutionId
from attune.kernel.messages import ExecutionScheduled, Payload
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Completed
from attune.pipeline.flow import Flow
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.workers.model import Worker
from attune.worker.handoffs import hand_offs
from attune.worker.jobs import Jobs

_log = structlog.get_logger()


class Intake:
    """Once `closed`, nothing starts any more, whatever is under way."""

    def __init__(self, flow: Flow, jobs: Jobs, worker: Worker) -> None:
        self.closed = False
        self._flow = flow
        self._jobs = jobs
        self._worker = worker
        self._taking: Batcher[list[ExecutionId], None] = Batcher("hand-offs", self._take)

    async def order(self, items: Sequence[Payload]) -> None:
        """Return when what a message orders has begun, or turned out not to be ours."""
        orders = (item for item in items if isinstance(item, ExecutionScheduled))
        await self._taking.submit(
            [
                order.execution_id
                for order in orders
                if not self._jobs.holds(order.execution_id, order.attempt)
            ]
        )

    def handed(self, completed: Completed) -> None:
        """What an end has made room for begins at once. What is a later process's of this name, it will find."""
        handed = completed.handed
        if not handed or completed.incarnation != self._worker.incarnation:
            return
        known = self._flow.definitions.known({one.definition for one in handed}) or {}
        for one in handed:
            if one.definition in known and self._may_begin(one):
                self._jobs.begin(one, known[one.definition])

    async def _take(self, batches: list[list[ExecutionId]]) -> list[Exception | None]:
        if ids := list(dict.fromkeys(each for batch in batches for each in batch)):
            await self.begin(ids)
        return [None] * len(batches)

    async def begin(self, ids: Sequence[ExecutionId]) -> None:
        """The rows say whether these are still ours; what has begun already stays as it is."""
        database = self._flow.database
        found = await database.read(hand_offs, self._worker, ids)
        definitions = await self._definitions({one.definition for one in found})
        order = {execution: number for number, execution in enumerate(ids)}
        for one in sorted(found, key=lambda one: order[one.execution]):
            if self._may_begin(one):
                self._jobs.begin(one, definitions[one.definition])

    def _may_begin(self, hand_off: HandOff) -> bool:
        """What is to be cancelled is never started, so it may come to its end at any time."""
        if hand_off.status is ExecutionStatus.CANCELING:
            return True
        if self.closed:
            return False
        if hand_off.may_begin(self._flow.terms.lease, self._flow.clock.now()):
            return True
        _log.warning("A hand-off came too late to begin.", execution_id=hand_off.execution)
        return False

    async def _definitions(
        self, ids: set[ActionDefinitionId]
    ) -> Mapping[ActionDefinitionId, ActionDefinition]:
        known = self._flow.definitions.known(ids)
        if known is not None:
            return known
        return await self._flow.database.read(self._flow.definitions.get, ids)
