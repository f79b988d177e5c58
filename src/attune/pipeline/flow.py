"""The stages put together: what a process runs of the pipeline, each call one transaction.

Where the stages share a process (`through`), an event or a request goes all the way to a worker in the commit that
accepts it. Elsewhere it is accepted here, and a message hurries the process that has the next stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, ParamSpec, TypeVar

import msgspec

from attune.catalog.definitions import Definitions
from attune.catalog.runtime_settings import load_settings
from attune.catalog.versions import current_version
from attune.kernel.batching import Batcher
from attune.kernel.clock import Clock
from attune.kernel.ids import EnforcementId, EventId, ExecutionId, LaneId, WorkerId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion import cancel, lost
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.completion.waiting import end_waiting
from attune.pipeline.enforcements.steps import Books, process_enforcements, process_events
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.events.steps import TriggerBook, record
from attune.pipeline.executions.actions import ActionBook
from attune.pipeline.executions.model import Execution, Priority
from attune.pipeline.executions.requests import Order
from attune.pipeline.intake import enter, take_orders
from attune.pipeline.outbox import Mail, Outbox
from attune.pipeline.policies.book import PolicyBook
from attune.pipeline.queues import control, expiry, locking
from attune.pipeline.queues.arranging import Arranger
from attune.pipeline.queues.steps import Lanes, lanes_by_id, lanes_with_waiting
from attune.pipeline.rules.book import RuleBook
from attune.pipeline.scheduling.model import Terms, Unplaceable
from attune.pipeline.scheduling.steps import Scheduler, fail_unplaceable
from attune.store.database import Database, Step, Tx

QUEUES: Final = "queues"

_S = ExecutionStatus

_ORDERS_AT_ONCE: Final = 500
_ENDED_AT_ONCE: Final = 500

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    """What a step came to, and what it found that nobody can run."""

    value: T
    unplaceable: tuple[Unplaceable, ...] = ()


class Flow:
    def __init__(
        self, database: Database, clock: Clock, mail: Mail, terms: Terms, *, through: bool
    ) -> None:
        self.database = database
        self.clock = clock
        self.mail = mail
        self.terms = terms
        self.definitions = Definitions()
        self.scheduler = Scheduler(terms, self.definitions)
        self._through = through
        self._triggers = TriggerBook()
        self._books = Books(ActionBook(), RuleBook())
        self.arranger = Arranger(PolicyBook(), terms.queue)
        self._orders: Batcher[Order, list[Execution]] = Batcher(
            "requests", self._request, limit=_ORDERS_AT_ONCE
        )

    async def record_events(self, new: Sequence[NewEvent]) -> list[Event]:
        """In their order, all of them or none."""
        return await self._run(self._record_step, new)

    async def request(self, order: Order) -> list[Execution]:
        """The executions, in the order of their requests, once they are safe. Many callers share a commit."""
        return await self._orders.submit(order)

    async def process_events(self, ids: Sequence[EventId]) -> None:
        await self._run(self._events_step, ids)

    async def process_enforcements(self, ids: Sequence[EnforcementId]) -> None:
        await self._run(self._enforcements_step, ids)

    async def schedule(self) -> None:
        """Give what is ready to workers."""
        await self._run(self._schedule_step)

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

    async def cancel(self, execution_id: ExecutionId) -> Execution:
        return await self._run(self._cancel_step, execution_id)

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

    async def _run(self, step: Step[P, _Done[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a step, then end what nobody can run. That frees slots for others, of whom the same may be true."""
        done = await self.database.run(step, *args, **kwargs)
        unplaceable = done.unplaceable
        while unplaceable:
            unplaceable = (await self.database.run(self._fail_step, unplaceable)).unplaceable
        return done.value

    async def _request(self, orders: list[Order]) -> list[list[Execution] | Exception]:
        return await self._run(self._request_step, orders)

    async def _request_step(
        self, tx: Tx, orders: list[Order]
    ) -> _Done[list[list[Execution] | Exception]]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        answers = await take_orders(tx, self._books.actions, self.arranger, outbox, orders, now)
        return _Done(answers, await self._given_on(tx, outbox, now))

    async def _record_step(self, tx: Tx, new: Sequence[NewEvent]) -> _Done[list[Event]]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        events = await record(tx, self._triggers, outbox, new, now)
        if not self._through:
            return _Done(events)
        ids = sorted({event.id for event in events})
        made = await process_events(tx, self._books, outbox, ids, now)
        return _Done(events, await self._onward(tx, outbox, made))

    async def _events_step(self, tx: Tx, ids: Sequence[EventId]) -> _Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        made = await process_events(tx, self._books, outbox, ids, now)
        return _Done(None, await self._onward(tx, outbox, made))

    async def _enforcements_step(self, tx: Tx, ids: Sequence[EnforcementId]) -> _Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        made = await process_enforcements(tx, self._books, outbox, ids, now)
        return _Done(None, await self._onward(tx, outbox, made))

    async def _schedule_step(self, tx: Tx) -> _Done[None]:
        outbox = Outbox(tx, self.mail)
        done = await self.scheduler.assign(tx, outbox, self.clock.now())
        return _Done(None, done.unplaceable)

    async def _promote_step(self, tx: Tx, *, by_itself: bool) -> _Done[None]:
        terms = self.terms.queue
        if by_itself:
            terms = msgspec.structs.replace(terms, deferred=False)
        lanes = await lanes_with_waiting(tx, terms, self.clock.now())
        await lanes.promote()
        return await self._saved(lanes)

    async def _admit_step(
        self, tx: Tx, lane: LaneId, proposed: Sequence[ExecutionId]
    ) -> _Done[list[ExecutionId]]:
        lanes = await lanes_by_id(tx, [lane], self.terms.queue, self.clock.now())
        admitted = await lanes.admit(lane, len(proposed))
        done = await self._saved(lanes)
        return _Done(admitted, done.unplaceable)

    async def _open_gates_step(self, tx: Tx) -> _Done[None]:
        now = self.clock.now()
        ids = await locking.with_open_gates(tx, now)
        lanes = await lanes_by_id(tx, ids, self.terms.queue, now)
        await lanes.promote()
        return await self._saved(lanes, changed=bool(ids))

    async def _arrange_step(self, tx: Tx) -> _Done[None]:
        version = await current_version(tx)
        lanes = await self.arranger.arrange_all(tx, version, self.clock.now())
        await lanes.promote()
        return await self._saved(lanes, changed=bool(lanes.held.lanes))

    async def _pause_step(
        self, tx: Tx, action_ref: str, group_key: str | None, by: str, *, paused: bool
    ) -> _Done[int]:
        now, version = self.clock.now(), await current_version(tx)
        lanes = await self.arranger.of_action(tx, version, action_ref, group_key, now)
        await control.set_paused(lanes, by, paused=paused)
        await lanes.promote()
        done = await self._saved(lanes, changed=True)
        return _Done(len(lanes.held.lanes), done.unplaceable)

    async def _clear_step(self, tx: Tx, ids: Sequence[ExecutionId], by: str) -> _Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        text = f"The queue was cleared by {by}."
        ended = await end_waiting(
            tx, self.terms.queue, outbox, dict.fromkeys(ids, text), _S.CANCELLED, now
        )
        return _Done(len(ended), await self._given_on(tx, outbox, now))

    async def _expire_step(self, tx: Tx, overdue: Mapping[ExecutionId, str]) -> _Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        ended = await end_waiting(tx, self.terms.queue, outbox, overdue, _S.TIMEOUT, now)
        return _Done(len(ended), await self._given_on(tx, outbox, now))

    async def _reprioritize_step(
        self, tx: Tx, execution_id: ExecutionId, priority: Priority, by: str
    ) -> _Done[None]:
        now = self.clock.now()
        lanes = await control.reprioritize(tx, self.terms.queue, execution_id, priority, by, now)
        Outbox(tx, self.mail).hurry([execution_id])
        return await self._saved(lanes)

    async def _limit_step(self, tx: Tx, lane: LaneId, limit: int, why: str) -> _Done[None]:
        now = self.clock.now()
        return await self._saved(
            await control.change_limit(tx, self.terms.queue, lane, limit, why, now), changed=True
        )

    async def _saved(self, lanes: Lanes, *, changed: bool = False) -> _Done[None]:
        """Written, and given on to workers. `changed`: what lets them through did, which a queue outside must hear."""
        outbox = Outbox(lanes.tx, self.mail)
        if changed and self.terms.queue.deferred:
            lanes.tx.wake(QUEUES)
        await lanes.save()
        unplaceable = await self._given_on(lanes.tx, outbox, lanes.now)
        if not self._through:
            outbox.hurry(lanes.promoted)
        return _Done(None, unplaceable)

    async def _fail_step(self, tx: Tx, unplaceable: tuple[Unplaceable, ...]) -> _Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        await fail_unplaceable(tx, self.terms, outbox, unplaceable, now)
        return _Done(None, (await self.scheduler.assign(tx, outbox, now)).unplaceable)

    async def _cancel_step(self, tx: Tx, execution_id: ExecutionId) -> _Done[Execution]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        cancelled = await cancel.cancel(tx, self.terms.queue, outbox, execution_id, now)
        return _Done(cancelled, await self._given_on(tx, outbox, now))

    async def _silent_step(self, tx: Tx, worker: WorkerId) -> _Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        since = now - self.terms.stale
        count = await lost.take_back_from_silent(
            tx, self.terms.queue, self.definitions, outbox, worker, since, now
        )
        return _Done(count, await self._given_on(tx, outbox, now))

    async def _take_back_step(self, tx: Tx, worker: LostWorker, reason: str) -> _Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        count = await lost.take_back(
            tx, self.terms.queue, self.definitions, outbox, worker, reason, now
        )
        return _Done(count, await self._given_on(tx, outbox, now))

    async def _given_on(self, tx: Tx, outbox: Outbox, now: datetime) -> tuple[Unplaceable, ...]:
        """What is ready goes to workers here, where that is this process's business."""
        if not self._through:
            return ()
        return (await self.scheduler.assign(tx, outbox, now)).unplaceable

    async def _onward(
        self, tx: Tx, outbox: Outbox, made: Sequence[Execution]
    ) -> tuple[Unplaceable, ...]:
        """Into their lanes, and from there to workers where that is this process's business."""
        if not made:
            return ()
        now = self.clock.now()
        await enter(tx, self.arranger, outbox, made, now)
        return await self._given_on(tx, outbox, now)
