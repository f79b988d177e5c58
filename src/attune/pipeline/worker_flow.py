"""What is done about workers and attempts: taken back, handed back, overdue, or due again. Each call is a transaction,
or one for each few."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.completion import lost, overdue
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.completion.overdue import Monitor, Overdue
from attune.pipeline.executions.steps import executions_of
from attune.pipeline.outbox import Outbox
from attune.pipeline.queue_flow import QueueFlow
from attune.pipeline.queues import returning
from attune.pipeline.running import Done
from attune.store.database import Tx

_AT_ONCE: Final = 500


class WorkerFlow(QueueFlow):
    async def release_delayed(self) -> datetime | None:
        """Let executions come back whose delay is over; when the next one is due, if there is one."""
        while ids := await self.database.read(returning.due, self.clock.now(), _AT_ONCE):
            await self._run(self._release_step, ids)
        return await self.database.read(returning.next_due)

    async def fail_unbegun(self) -> int:
        """End attempts that no worker began within their lease; how many that were."""
        found = await self.database.read(overdue.unbegun, self.clock.now())
        return await self._end_overdue(Monitor.SCHEDULED_TIMEOUT, found)

    async def fail_unended(self) -> int:
        """End attempts that no worker ended within their limit; how many that were."""
        found = await self.database.read(overdue.unended, self.clock.now())
        return await self._end_overdue(Monitor.RUN_DEADLINE, found)

    async def fail_expired(self, attempts: Mapping[ExecutionId, int]) -> int:
        """End attempts whose hand-off nobody read in time, as far as their lease is over; how many that were."""
        return await self._run(self._overdue_step, Monitor.DEAD_LETTERS, attempts)

    async def hand_back(self, worker: WorkerId, ids: Collection[ExecutionId]) -> int:
        """What this worker was handed and knows that it has not begun; how many that were."""
        return await self._run(self._hand_back_step, worker, ids)

    async def _end_overdue(self, monitor: Monitor, found: Sequence[Overdue]) -> int:
        ended = 0
        for start in range(0, len(found), _AT_ONCE):
            some = {one.execution: one.attempt for one in found[start : start + _AT_ONCE]}
            ended += await self._run(self._overdue_step, monitor, some)
        return ended

    async def take_back_from_silent(self) -> int:
        """What workers held that are gone; how many executions that were."""
        since = self.clock.now() - self.terms.stale
        total = 0
        for worker in await self.database.read(lost.silent_workers, since):
            total += await self._run(self._silent_step, worker.id)
        return total

    async def take_back(self, worker: LostWorker, reason: str) -> int:
        """What this worker holds and will not finish. `reason` completes "The worker w …"."""
        return await self._run(self._take_back_step, worker, reason)

    async def _silent_step(self, tx: Tx, worker: WorkerId) -> Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        since = now - self.terms.stale
        count = await lost.take_back_from_silent(
            tx, self.terms.queue, self.definitions, outbox, worker, since, now
        )
        return Done(count, await self._given_on(tx, outbox, now))

    async def _take_back_step(self, tx: Tx, worker: LostWorker, reason: str) -> Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        count = await lost.take_back(
            tx, self.terms.queue, self.definitions, outbox, worker, reason, now
        )
        return Done(count, await self._given_on(tx, outbox, now))

    async def _hand_back_step(
        self, tx: Tx, worker: WorkerId, ids: Collection[ExecutionId]
    ) -> Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        count = await lost.hand_back(tx, self.terms.queue, outbox, worker, ids, now)
        return Done(count, await self._given_on(tx, outbox, now))

    async def _overdue_step(
        self, tx: Tx, monitor: Monitor, attempts: Mapping[ExecutionId, int]
    ) -> Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        terms = self.terms.queue
        ended = await overdue.end_overdue(tx, terms, outbox, monitor, attempts, now)
        return Done(len(ended), await self._given_on(tx, outbox, now))

    async def _release_step(self, tx: Tx, ids: Sequence[ExecutionId]) -> Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        resting = await executions_of(tx, ids)
        placed = await self.arranger.place(tx, await self.versions.expect(tx), resting, now)
        back = await returning.step_in(placed.lanes, placed.places)
        await placed.lanes.save()
        outbox.hurry(back)
        return Done(None, await self._given_on(tx, outbox, now))
