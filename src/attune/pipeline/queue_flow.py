"""What is done to queues as a whole: by operators, by time, by a change of policy. Each call is one transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.catalog.runtime_settings import load_settings
from attune.catalog.versions import current_version
from attune.kernel.clock import Clock
from attune.kernel.ids import ExecutionId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.waiting import end_waiting
from attune.pipeline.executions.model import Priority
from attune.pipeline.outbox import Mail, Outbox
from attune.pipeline.policies.book import PolicyBook
from attune.pipeline.queues import control, expiry, locking
from attune.pipeline.queues.arranging import Arranger
from attune.pipeline.queues.steps import lanes_by_id, lanes_with_waiting
from attune.pipeline.running import Done, Running
from attune.pipeline.scheduling.model import Terms
from attune.store.database import Database, Tx

_S = ExecutionStatus

_ENDED_AT_ONCE: Final = 500


class QueueFlow(Running):
    def __init__(
        self, database: Database, clock: Clock, mail: Mail, terms: Terms, *, through: bool
    ) -> None:
        super().__init__(database, clock, mail, terms, through=through)
        self.arranger = Arranger(PolicyBook(), terms.queue)

    async def promote(self, *, by_itself: bool = False) -> None:
        """Give every free slot to the head of its lane: after a limit was raised, or a message was lost.

        `by_itself`: also in lanes where a queue outside the database proposes who is next.
        """
        await self._run(self._promote_step, by_itself=by_itself)

    async def admit(self, lane: LaneId, proposed: Sequence[ExecutionId]) -> list[ExecutionId]:
        """Admit as many as were proposed and find room, in the order of the database; those that were."""
        return await self._run(self._admit_step, lane, proposed)

    async def open_gates(self) -> datetime | None:
        """Let through what waited for a time that has come; the next such time, if there is one."""
        await self._run(self._open_gates_step)
        return await self.database.read(locking.next_opening)

    async def arrange(self) -> None:
        """Let what already waits follow the policies as they are now."""
        await self._run(self._arrange_step)

    async def pause(self, action_ref: str, group: str | None, by: str) -> int:
        """Hold the action's queue, or one group of it; how many lanes that were. What runs goes on."""
        return await self._run(self._pause_step, action_ref, group, by, paused=True)

    async def resume(self, action_ref: str, group: str | None, by: str) -> int:
        return await self._run(self._pause_step, action_ref, group, by, paused=False)

    async def clear(self, action_ref: str, group: str | None, by: str) -> int:
        """End what waits, as cancelled; how many that were. What workers have goes on."""
        ended = 0
        while some := await self.database.read(
            control.first_waiting, action_ref, group, _ENDED_AT_ONCE
        ):
            ended += await self._run(self._clear_step, some, by)
        return ended

    async def expire(self) -> int:
        """End what waited longer than queue_timeout_seconds; how many that were."""
        settings = await self.database.read(load_settings)
        seconds = settings.queue_timeout_seconds or self.terms.queue.timeout_seconds
        ended = 0
        while True:
            before = self.clock.now() - timedelta(seconds=seconds)
            found = await self.database.read(expiry.overdue, before, _ENDED_AT_ONCE)
            if not found:
                return ended
            texts = {one.execution: one.text(seconds) for one in found}
            ended += await self._run(self._expire_step, texts)

    async def reprioritize(self, execution_id: ExecutionId, priority: Priority, by: str) -> None:
        """`Conflict` for one that no longer waits."""
        await self._run(self._reprioritize_step, execution_id, priority, by)

    async def change_limit(self, lane: LaneId, limit: int, why: str) -> None:
        """For a limit that follows its action."""
        await self._run(self._limit_step, lane, limit, why)

    async def _promote_step(self, tx: Tx, *, by_itself: bool) -> Done[None]:
        terms = self.terms.queue
        if by_itself:
            terms = msgspec.structs.replace(terms, deferred=False)
        lanes = await lanes_with_waiting(tx, terms, self.clock.now())
        await lanes.promote()
        return await self._saved(lanes)

    async def _admit_step(
        self, tx: Tx, lane: LaneId, proposed: Sequence[ExecutionId]
    ) -> Done[list[ExecutionId]]:
        lanes = await lanes_by_id(tx, [lane], self.terms.queue, self.clock.now())
        admitted = await lanes.admit(lane, len(proposed))
        done = await self._saved(lanes)
        return Done(admitted, done.unplaceable)

    async def _open_gates_step(self, tx: Tx) -> Done[None]:
        now = self.clock.now()
        ids = await locking.with_open_gates(tx, now)
        lanes = await lanes_by_id(tx, ids, self.terms.queue, now)
        await lanes.promote()
        return await self._saved(lanes, changed=bool(ids))

    async def _arrange_step(self, tx: Tx) -> Done[None]:
        version = await current_version(tx)
        lanes = await self.arranger.arrange_all(tx, version, self.clock.now())
        await lanes.promote()
        return await self._saved(lanes, changed=bool(lanes.held.lanes))

    async def _pause_step(
        self, tx: Tx, action_ref: str, group_key: str | None, by: str, *, paused: bool
    ) -> Done[int]:
        now, version = self.clock.now(), await current_version(tx)
        lanes = await self.arranger.of_action(tx, version, action_ref, group_key, now)
        await control.set_paused(lanes, by, paused=paused)
        await lanes.promote()
        done = await self._saved(lanes, changed=True)
        return Done(len(lanes.held.lanes), done.unplaceable)

    async def _clear_step(self, tx: Tx, ids: Sequence[ExecutionId], by: str) -> Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        text = f"The queue was cleared by {by}."
        ended = await end_waiting(
            tx, self.terms.queue, outbox, dict.fromkeys(ids, text), _S.CANCELLED, now
        )
        return Done(len(ended), await self._given_on(tx, outbox, now))

    async def _expire_step(self, tx: Tx, overdue: Mapping[ExecutionId, str]) -> Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        ended = await end_waiting(tx, self.terms.queue, outbox, overdue, _S.TIMEOUT, now)
        return Done(len(ended), await self._given_on(tx, outbox, now))

    async def _reprioritize_step(
        self, tx: Tx, execution_id: ExecutionId, priority: Priority, by: str
    ) -> Done[None]:
        now = self.clock.now()
        lanes = await control.reprioritize(tx, self.terms.queue, execution_id, priority, by, now)
        Outbox(tx, self.mail).hurry([execution_id])
        return await self._saved(lanes)

    async def _limit_step(self, tx: Tx, lane: LaneId, limit: int, why: str) -> Done[None]:
        now = self.clock.now()
        return await self._saved(
            await control.change_limit(tx, self.terms.queue, lane, limit, why, now), changed=True
        )
