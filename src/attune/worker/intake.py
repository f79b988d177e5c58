"""Hand-offs on their way from a message, an end or a look at the rows to the jobs that they become."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import structlog

from attune.catalog.model import ActionDefinition
from attune.kernel.batching import Batcher
from attune.kernel.ids import ActionDefinitionId, ExecutionId
from attune.kernel.messages import (
    ExecutionScheduled,
    ExecutionStatusChanged,
    Payload,
)
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Completed
from attune.pipeline.flow import Flow
from attune.pipeline.scheduling.hand_off import HandOff
from attune.pipeline.workers.model import Worker
from attune.worker.handoffs import hand_offs
from attune.worker.jobs import Jobs

_S = ExecutionStatus

_log = structlog.get_logger()


class Intake:
    """Once `closed`, nothing starts any more, whatever is under way."""

    def __init__(self, flow: Flow, jobs: Jobs, worker: Worker) -> None:
        self.closed = False
        self._flow = flow
        self._jobs = jobs
        self._worker = worker
        self._taking: Batcher[list[ExecutionScheduled], None] = Batcher("hand-offs", self._take)

    async def order(self, items: Sequence[Payload]) -> None:
        """Return when what a message orders has begun, or turned out not to be ours."""
        orders = (item for item in items if isinstance(item, ExecutionScheduled))
        await self._taking.submit(
            [one for one in orders if not self._jobs.holds(one.execution_id, one.attempt)]
        )

    def handed(self, completed: Completed) -> None:
        """What an end has made room for begins at once. What is a later process's of this name, it will find."""
        handed = completed.handed
        if not handed or completed.incarnation != self._worker.incarnation:
            return
        known = self._flow.definitions.known({one.definition for one in handed}) or {}
        now = self._flow.clock.now()
        for one in handed:
            if one.definition in known and self._may_begin(one, now):
                self._jobs.begin(one, known[one.definition])

    async def _take(self, batches: list[list[ExecutionScheduled]]) -> list[Exception | None]:
        orders = {each.execution_id: each for batch in batches for each in batch}
        if orders:
            new = {one.execution_id for one in orders.values() if one.is_new}
            here = self._flow.scheduler.hatch.take(
                (one.execution_id, one.attempt) for one in orders.values()
            )
            await self.begin(list(orders), new, here)
        return [None] * len(batches)

    async def begin(
        self,
        ids: Sequence[ExecutionId],
        new: Collection[ExecutionId] = frozenset(),
        here: Collection[HandOff] = (),
    ) -> None:
        """The rows say whether these are still ours, but for those that are `here`, which were just now committed; what has
        begun already stays as it is. Of those that are `new` nobody has told yet that there are.

        A glance, for there are no more of them than this worker has slots.
        """
        found = [*here]
        if others := sorted(set(ids).difference(one.execution for one in here)):
            found += await self._flow.database.glance(hand_offs, self._worker, others)
        definitions = await self._definitions({one.definition for one in found})
        order = {execution: number for number, execution in enumerate(ids)}
        now = self._flow.clock.now()
        for one in sorted(found, key=lambda one: order[one.execution]):
            if self._may_begin(one, now) and not self._jobs.holds(one.execution, one.attempt):
                self._tell(one, is_new=one.execution in new)
                self._jobs.begin(one, definitions[one.definition])

    def _tell(self, hand_off: HandOff, *, is_new: bool) -> None:
        """That it was handed over; it leaves along with the end if that comes soon. A wish to cancel was told already,
        and by somebody who knew of the hand-over."""
        if hand_off.status is _S.SCHEDULED:
            since = hand_off.since(self._flow.terms.lease)
            made = [_change(hand_off, _S.REQUESTED, None, since)] if is_new else []
            items = [*made, _change(hand_off, _S.SCHEDULED, _S.REQUESTED, since)]
            self._flow.mail.moved(items, may_wait=True)

    def _may_begin(self, hand_off: HandOff, now: datetime) -> bool:
        """What is to be cancelled is never started, so it may come to its end at any time."""
        if hand_off.status is _S.CANCELING:
            return True
        if self.closed:
            return False
        if hand_off.may_begin(self._flow.terms.lease, now):
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


def _change(
    hand_off: HandOff, status: ExecutionStatus, old: ExecutionStatus | None, at: datetime | None
) -> Payload:
    return ExecutionStatusChanged(
        execution_id=hand_off.execution,
        status=status,
        old_status=old,
        action_ref=hand_off.action_ref,
        attempt=hand_off.attempt,
        updated=at,
    )
