"""The control plane under a clock and with a worker that the test moves: what starts and ends does so by its word."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec

from attune.catalog.runtime_settings import change_settings
from attune.catalog.steps.actions import NewAction, create_action
from attune.catalog.steps.packs import NewPack, create_pack
from attune.kernel.clock import SystemClock
from attune.kernel.ids import ExecutionId, IdentityId, LaneId
from attune.kernel.settings import Settings
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Completed, Ended, Started
from attune.pipeline.completion.steps import complete, report_running
from attune.pipeline.executions.model import Execution, Priority, Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Outbox
from attune.pipeline.workers.model import Registration, RuntimeSupport, Worker
from attune.pipeline.workers.steps import register
from attune.simulation.clock import ManualClock
from attune.store import migrate, schema
from attune.store.database import Tx
from tests.contract.pipeline.proofs import LaneRow, lane_rows
from tests.contract.pipeline.world import World

NORMAL = Priority.NORMAL
PARAMETERS = {
    "customer": {"type": "string"},
    "pin": {"type": "string", "secret": True},
    "order": {"type": "object"},
}

# All but the table whose one row is the catalog's version.
FILLED = [each.name for each in schema.metadata.sorted_tables if each.name != "catalog_version"]


class SteppedClock(SystemClock):
    """Its time goes on only when a test lets it; whoever sleeps between two tries sleeps as always."""

    def __init__(self) -> None:
        self.manual = ManualClock()
        self.now = self.manual.now  # type: ignore[method-assign]


class _Place(msgspec.Struct, frozen=True):
    attempt: int
    lane: LaneId


class Bench(World):
    """`flow` is the first of any number of executors. Actions `a.one`, `a.two` and `b.one` do nothing."""

    clock: SteppedClock

    def __init__(self, settings: Settings, *, capacity: int = 1000) -> None:
        super().__init__(settings, clock=SteppedClock())
        self._capacity = capacity

    def new_flow(self, source: str, *, through: bool, **terms: Any) -> Flow:
        return super().new_flow(source, through=through, **{"stale": timedelta(days=9999), **terms})

    async def __aenter__(self) -> Self:
        """Without the core pack: nothing here runs for real. What another bench left in the database goes."""
        await migrate.upgrade(self.settings.database_url)
        await self.database.open()
        self._stack.push_async_callback(self.database.close)
        await self.bus.start()
        self._stack.push_async_callback(self.bus.close)
        self._stack.push_async_callback(self.announcer.stop)
        if not self.settings.embedded:
            await self.execute(f"TRUNCATE {', '.join(FILLED)}")
        await self._define()
        return self

    async def _define(self) -> None:
        now = self.clock.now()
        for pack in "ab":
            await self.database.run(
                create_pack, NewPack(ref=pack, label=pack, version="1.0.0"), now
            )
        for ref in ("a.one", "a.two", "b.one"):
            new = NewAction(ref=ref, pack_ref=ref[0], label=ref, param_schema=PARAMETERS)
            await self.database.run(create_action, new, now)
        await self.come("hand", self._capacity)

    async def come(self, name: str, capacity: int) -> Worker:
        runtimes = [RuntimeSupport("native")]
        new = Registration(
            name=name, capacity=capacity, supported_runtimes=runtimes, incarnation="x"
        )
        return await self.database.run(register, new, self.clock.now())

    def step(self, seconds: float) -> None:
        """Time goes on, and nobody looks."""
        self.clock.manual._elapsed += seconds

    async def ask(
        self,
        action_ref: str = "a.one",
        count: int = 1,
        *,
        executor: int | None = None,
        priority: Priority = NORMAL,
        flow: Flow | None = None,
        **parameters: Any,
    ) -> list[ExecutionId]:
        """Ask for so many in one order; their ids in its order."""
        request = Request(
            action_ref=action_ref,
            parameters=parameters,
            priority=priority,
            executor=None if executor is None else IdentityId(executor),
        )
        made = await self.order([request] * count, flow)
        return [one.id for one in made]

    async def order(self, requests: Iterable[Request], flow: Flow | None = None) -> list[Execution]:
        return await (flow or self.flow).request(Order(tuple(requests)))

    async def start(self, *ids: ExecutionId) -> None:
        """Their worker begins them now, and says so."""
        now = self.clock.now()

        async def tell(tx: Tx) -> None:
            started = [Started(e, (await _place(tx, e)).attempt, now) for e in ids]
            await report_running(tx, Outbox(tx, self.flow.mail), started)

        await self.database.run(tell)

    async def end(
        self,
        *ids: ExecutionId,
        status: ExecutionStatus = ExecutionStatus.COMPLETED,
        seconds: float | None = 0,
        flow: Flow | None = None,
    ) -> list[ExecutionId]:
        """Their worker ends them after so many seconds, null for no start at all; what it was handed next."""
        began = None if seconds is None else self.clock.now() - timedelta(seconds=seconds)
        words = [await self.word(one, status, began) for one in ids]
        ends = [await self.complete(one, flow=flow) for one in words]
        return [each.execution for one in ends for each in one.handed]

    async def word(
        self, execution: ExecutionId, status: ExecutionStatus, began: datetime | None
    ) -> Ended:
        """What its worker has to say of the end."""
        place = await self.database.read(_place, execution)
        return Ended(
            execution=execution,
            attempt=place.attempt,
            lane=place.lane,
            status=status,
            result=b"{}",
            started_at=began,
        )

    async def complete(self, *words: Ended, flow: Flow | None = None) -> Completed:
        """The words reach an executor in one batch, also one that was told before."""
        executor = flow or self.flow
        worker = await self.value(int, "SELECT min(id) FROM worker")

        async def end(tx: Tx) -> Completed:
            outbox, now = Outbox(tx, executor.mail), self.clock.now()
            return await complete(tx, executor.scheduler, outbox, worker, words, now)

        return await self.database.run(end)

    async def set(self, **settings: Any) -> None:
        await self.database.run(change_settings, settings, None, self.clock.now())

    async def running(self, *action_refs: str) -> list[ExecutionId]:
        """Those that hold a slot, in the order in which they were asked for."""
        return await self._standing("e.state <> 'queued'", action_refs, "e.execution")

    async def in_hand(self, *action_refs: str) -> list[ExecutionId]:
        """Those that a worker has, in the order in which they were asked for."""
        return await self._standing("e.state = 'handed'", action_refs, "e.execution")

    async def waiting(self, *action_refs: str) -> list[ExecutionId]:
        """Those that wait for a slot, by band and age."""
        return await self._standing(
            "e.state = 'queued'", action_refs, "e.band, e.enqueued_at, e.execution"
        )

    async def lane(self, action_ref: str = "a.one", group: str | None = None) -> LaneRow:
        """The one lane of the action, or of the group, that is in use."""
        rows = [one for one in await self.lanes(action_ref) if group in (None, one.group_key)]
        [found] = [one for one in rows if one.queue_length + one.active_count] or rows[-1:]
        return found

    async def lanes(self, action_ref: str = "a.one") -> list[LaneRow]:
        return [one for one in await lane_rows(self) if one.action_ref == action_ref]

    async def error(self, execution: ExecutionId) -> tuple[ExecutionStatus, str]:
        """How it ended, and what its result says of it."""
        found = await self.execution(execution)
        return found.status, (found.result or {}).get("error", "")

    async def _standing(self, state: str, refs: Sequence[str], order: str) -> list[ExecutionId]:
        return await self.values(
            ExecutionId,
            f"""SELECT e.execution FROM entry e JOIN lane l ON l.id = e.lane
                 WHERE {state} AND (:all OR l.action_ref = ANY(:refs::text[])) ORDER BY {order}""",
            refs=list(refs),
            all=not refs,
        )


async def _place(tx: Tx, execution: ExecutionId) -> _Place:
    sql = "SELECT attempt, lane FROM entry WHERE execution = :id"
    return await tx.one(_Place, sql, id=execution)
