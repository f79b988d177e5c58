"""The stages put together: what a process runs of the pipeline, each call one transaction.

An event or a request goes all the way to a worker in the commit that accepts it (`through`). Without that it is accepted
here, and a message hurries the process that has the next stage.
"""

from collections.abc import Sequence
from typing import Final

from attune.kernel.batching import Batcher
from attune.kernel.clock import Clock
from attune.kernel.ids import EnforcementId, EventId, ExecutionId
from attune.pipeline.completion import cancel
from attune.pipeline.enforcements.steps import Books, process_enforcements, process_events
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.events.steps import TriggerBook, record
from attune.pipeline.executions.actions import ActionBook
from attune.pipeline.executions.model import Execution
from attune.pipeline.executions.requests import Order
from attune.pipeline.intake import Intake
from attune.pipeline.outbox import Mail, Outbox
from attune.pipeline.queues.steps import Lanes
from attune.pipeline.rules.book import RuleBook
from attune.pipeline.running import Done
from attune.pipeline.scheduling.model import Terms, Unplaceable
from attune.pipeline.scheduling.muster import Muster
from attune.pipeline.worker_flow import WorkerFlow
from attune.store.database import FEW, Database, Tx

_ORDERS_AT_ONCE: Final = 500


class Flow(WorkerFlow):
    def __init__(
        self, database: Database, clock: Clock, mail: Mail, terms: Terms, *, through: bool
    ) -> None:
        super().__init__(database, clock, mail, terms, through=through)
        self._triggers = TriggerBook()
        self._books = Books(ActionBook(), RuleBook())
        self._intake = Intake(self.versions, self._books.actions, self.arranger)
        self._orders: Batcher[Order, list[Execution]] = Batcher(
            "requests", self._request, limit=_ORDERS_AT_ONCE
        )

    async def record_events(self, new: Sequence[NewEvent]) -> list[Event]:
        """In their order, all of them or none."""
        write = self._jot if len(new) <= FEW else self._run
        return await write(self._record_step, new)

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

    async def cancel(self, execution_id: ExecutionId) -> Execution:
        return await self._run(self._cancel_step, execution_id)

    async def _request(self, orders: list[Order]) -> list[list[Execution] | Exception]:
        write = self._jot if sum(len(one.requests) for one in orders) <= FEW else self._run
        return await write(self._request_step, orders)

    async def _request_step(
        self, tx: Tx, orders: list[Order]
    ) -> Done[list[list[Execution] | Exception]]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        muster = self.scheduler.muster(tx, now)
        along = muster.ask if self._through else None
        taken = await self._intake.take_orders(tx, outbox, orders, now, along)
        return Done(taken.answers, await self._onward_from(taken.lanes, outbox, muster))

    async def _record_step(self, tx: Tx, new: Sequence[NewEvent]) -> Done[list[Event]]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        events = await record(tx, self._triggers, outbox, new, now)
        if not self._through:
            return Done(events)
        ids = sorted({event.id for event in events})
        made = await process_events(tx, self._books, outbox, ids, now)
        return Done(events, await self._onward(tx, outbox, made))

    async def _events_step(self, tx: Tx, ids: Sequence[EventId]) -> Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        made = await process_events(tx, self._books, outbox, ids, now)
        return Done(None, await self._onward(tx, outbox, made))

    async def _enforcements_step(self, tx: Tx, ids: Sequence[EnforcementId]) -> Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        made = await process_enforcements(tx, self._books, outbox, ids, now)
        return Done(None, await self._onward(tx, outbox, made))

    async def _schedule_step(self, tx: Tx) -> Done[None]:
        outbox = Outbox(tx, self.mail)
        return Done(None, await self.scheduler.assign(tx, outbox, self.clock.now()))

    async def _cancel_step(self, tx: Tx, execution_id: ExecutionId) -> Done[Execution]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        cancelled = await cancel.cancel(tx, self.terms.queue, outbox, execution_id, now)
        return Done(cancelled, await self._given_on(tx, outbox, now))

    async def _onward(
        self, tx: Tx, outbox: Outbox, made: Sequence[Execution]
    ) -> tuple[Unplaceable, ...]:
        """Into their lanes, and from there to workers where that is this process's business."""
        if not made:
            return ()
        now = self.clock.now()
        muster = self.scheduler.muster(tx, now)
        along = muster.ask if self._through else None
        lanes = await self._intake.enter(tx, outbox, made, now, along)
        return await self._onward_from(lanes, outbox, muster)

    async def _onward_from(
        self, lanes: Lanes | None, outbox: Outbox, muster: Muster
    ) -> tuple[Unplaceable, ...]:
        """Whoever got a slot by this goes to a worker; nobody looks for others, whom another step made ready."""
        if lanes is None or not lanes.gave_slots:
            return ()
        return await self._given_on(lanes.tx, outbox, lanes.now, lanes.arrivals, muster)
