"""The stages put together: what a process runs of the pipeline, each call one transaction.

Where the stages share a process (`through`), an event or a request goes all the way to a worker in the commit that
accepts it. Elsewhere it is accepted here, and a message hurries the process that has the next stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, ParamSpec, TypeVar

from attune.catalog.definitions import Definitions
from attune.catalog.versions import current_version
from attune.kernel.batching import Batcher
from attune.kernel.clock import Clock
from attune.kernel.ids import EnforcementId, EventId, ExecutionId, WorkerId
from attune.pipeline.completion import cancel, lost
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.enforcements.steps import Books, process_enforcements, process_events
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.events.steps import TriggerBook, record
from attune.pipeline.executions.actions import ActionBook
from attune.pipeline.executions.model import Execution
from attune.pipeline.executions.requests import Order, place_orders
from attune.pipeline.outbox import Mail, Outbox
from attune.pipeline.queues.steps import lanes_of_actions, lanes_with_waiting
from attune.pipeline.rules.book import RuleBook
from attune.pipeline.scheduling.model import Terms, Unplaceable
from attune.pipeline.scheduling.steps import Scheduler, fail_unplaceable
from attune.store.database import Database, Step, Tx

_ORDERS_AT_ONCE: Final = 500

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

    async def promote(self) -> None:
        """Give every free slot to the head of its lane: after a limit was raised, or a queue resumed."""
        await self._run(self._promote_step)

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
        version = await current_version(tx)
        placed = await place_orders(tx, self._books.actions, version, outbox, orders, now)
        return _Done(placed.answers, await self._onward(tx, outbox, placed.new))

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

    async def _promote_step(self, tx: Tx) -> _Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        lanes = await lanes_with_waiting(tx, now)
        await lanes.promote()
        await lanes.save()
        return _Done(None, (await self.scheduler.assign(tx, outbox, now)).unplaceable)

    async def _fail_step(self, tx: Tx, unplaceable: tuple[Unplaceable, ...]) -> _Done[None]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        await fail_unplaceable(tx, outbox, unplaceable, now)
        return _Done(None, (await self.scheduler.assign(tx, outbox, now)).unplaceable)

    async def _cancel_step(self, tx: Tx, execution_id: ExecutionId) -> _Done[Execution]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        cancelled = await cancel.cancel(tx, outbox, execution_id, now)
        return _Done(cancelled, await self._given_on(tx, outbox, now))

    async def _silent_step(self, tx: Tx, worker: WorkerId) -> _Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        since = now - self.terms.stale
        count = await lost.take_back_from_silent(tx, self.definitions, outbox, worker, since, now)
        return _Done(count, await self._given_on(tx, outbox, now))

    async def _take_back_step(self, tx: Tx, worker: LostWorker, reason: str) -> _Done[int]:
        now, outbox = self.clock.now(), Outbox(tx, self.mail)
        count = await lost.take_back(tx, self.definitions, outbox, worker, reason, now)
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
        lanes = await lanes_of_actions(tx, {one.action_ref for one in made}, now)
        await lanes.join(made)
        await lanes.save()
        return await self._given_on(tx, outbox, now)
