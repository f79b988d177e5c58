"""Giving what is ready to workers: the hand-off, in the transaction that decides it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from attune.bus.topology import worker_queue_name
from attune.catalog.definitions import Definitions
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionScheduled, MessageType
from attune.kernel.statuses import ExecutionStatus, one_of, sources_through
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.outbox import Outbox
from attune.pipeline.queues.arrivals import Arrivals
from attune.pipeline.queues.locking import Loners
from attune.pipeline.queues.model import Entry
from attune.pipeline.queues.steps import lanes_of_executions
from attune.pipeline.scheduling.asides import asides
from attune.pipeline.scheduling.cap import Cap, lock_cap, log_hand_offs
from attune.pipeline.scheduling.compatibility import demand_of
from attune.pipeline.scheduling.decide import NONE_ASIDE, place
from attune.pipeline.scheduling.hand_off import HandOver, Scheduled
from attune.pipeline.scheduling.hatch import Hatch
from attune.pipeline.scheduling.line import ReadyLine, Standing, somebody
from attune.pipeline.scheduling.model import (
    Assignment,
    Placement,
    Terms,
    Unplaceable,
    Waiting,
)
from attune.pipeline.scheduling.muster import Muster
from attune.pipeline.scheduling.setbacks import Setbacks
from attune.pipeline.workers.decide import takes_work
from attune.pipeline.workers.model import Worker
from attune.store.database import Answer, Tx

_S = ExecutionStatus

_BEFORE_HAND_OFF: Final = frozenset({_S.REQUESTED, _S.SCHEDULING})
_PAGE: Final = 500
_PAGES: Final = 20
_STILL_READY: Final = """
    SELECT execution FROM entry WHERE execution = ANY(:ids::bigint[]) AND state = 'ready'
"""
# By their keys alone, worker by worker. A join with a list of pairs would be planned by what the queue was at the time: one
# that had just run empty would be read as a whole from then on, however long it has become.
_HAND: Final = """
    UPDATE entry SET state = 'handed', reason = NULL, worker = :worker, lease_expires_at = :lease
     WHERE execution = ANY(:ids::bigint[])
"""
_SCHEDULE: Final = f"""
    UPDATE execution SET status = 'scheduled', worker = :worker, updated = :now
     WHERE id = ANY(:ids::bigint[])
       AND {one_of("status", sources_through(_S.SCHEDULING, _S.SCHEDULED))}
    RETURNING {", ".join(Scheduled.__struct_fields__)}
"""  # noqa: S608 - the words and names are our own


@dataclass(frozen=True, slots=True)
class OwnPass:
    """What one worker was handed. `passed_over` are for another; `incarnation` is the worker's process that the rows
    name."""

    given: HandOver = field(default_factory=HandOver)
    passed_over: tuple[ExecutionId, ...] = ()
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class _Room:
    """The workers that are locked, what each has, and the cap of the whole system. `alone`: there may be others beside
    them."""

    workers: Sequence[Worker]
    loads: Mapping[WorkerId, int]
    cap: Cap | None
    alone: bool

    def takers(self, silence: timedelta, now: datetime) -> set[WorkerId]:
        """Those that may be handed something now; the others are there, and count as full."""
        return {one.id for one in self.workers if takes_work(one, silence, now)}

    @property
    def is_capped(self) -> bool:
        """Whether the whole system has no slot left."""
        return self.cap is not None and self.cap.free == 0

    def free(self, loads: Mapping[WorkerId, int], given: int) -> int:
        """How many more they can take, when so many were given already."""
        free = sum(max(one.capacity - loads.get(one.id, 0), 0) for one in self.workers)
        return free if self.cap is None else min(free, self.cap.free - given)


class Scheduler:
    """Steps that need what a process holds: its terms, and what it knows of the definitions and lanes that it has met.

    `hatch` is one for all flows of a process that has its worker in itself.
    """

    def __init__(self, terms: Terms, definitions: Definitions) -> None:
        self.terms = terms
        self.hatch = Hatch()
        self.loners = Loners()
        self.setbacks = Setbacks()
        self._definitions = definitions

    def muster(self, tx: Tx, now: datetime) -> Muster:
        return Muster(tx, now, waits=self.terms.waits)

    async def assign(
        self,
        tx: Tx,
        outbox: Outbox,
        now: datetime,
        arrivals: Arrivals | None = None,
        muster: Muster | None = None,
    ) -> tuple[Unplaceable, ...]:
        """Hand over everything that is ready and finds room among all workers; what nobody can run.

        The arrivals are ready by this transaction, and left to be written. Where nobody else is, there is nothing more to
        read. The workers may have been asked for before.
        """
        arrivals = arrivals or Arrivals()
        first = [*arrivals.entries][:1] or await somebody(tx)
        if not first:
            return ()
        muster = muster or self.muster(tx, now)
        present, state = await muster.told()
        if not present.is_whole:
            outbox.hurry(first)
            return ()
        line = ReadyLine(state, arrivals.entries.values())
        cap = await self._cap(tx, line)
        room = _Room(present.workers, present.loads, cap, alone=False)
        placement = await self._placed(tx, line, room, now)
        await self._log(tx, room.cap, line, placement, now)
        given = await self._hand(tx, placement.assigned, now, arrivals)
        worker_of = {one.entry.execution: one.worker for one in placement.assigned}
        outbox.fill(partial(self._order, outbox, given, worker_of))
        return tuple(placement.unplaceable)

    async def assign_to(
        self,
        tx: Tx,
        standing: Standing | None,
        freed: int,
        outbox: Outbox,
        now: datetime,
        fresh: Collection[Entry] = (),
    ) -> OwnPass:
        """Hand over to this worker alone, if it is there, and no more than it freed: others may have given it the rest.

        `fresh` are as in the line. It says nothing of what nobody can run, because it has not asked the others, and
        sends no order, because the worker is who asks.
        """
        if standing is None or not takes_work(standing, self.terms.stale, now):
            return OwnPass()
        if not standing.waiting and not fresh:
            return OwnPass()
        line = ReadyLine(standing.state, fresh)
        loads = {standing.id: max(standing.load, standing.capacity - freed)}
        room = _Room([standing], loads, await self._cap(tx, line), alone=True)
        placement = await self._placed(tx, line, room, now)
        await self._log(tx, room.cap, line, placement, now)
        given = await self._hand(tx, placement.assigned, now, Arrivals())
        outbox.fill(partial(_tell_scheduled, outbox, given, now))
        return OwnPass(given, tuple(placement.passed_over), standing.incarnation)

    async def _cap(self, tx: Tx, line: ReadyLine) -> Cap | None:
        """Locked after the workers."""
        return await lock_cap(tx) if line.cap is not None else None

    async def _log(
        self, tx: Tx, cap: Cap | None, line: ReadyLine, placement: Placement, now: datetime
    ) -> None:
        if cap is not None:
            await log_hand_offs(tx, cap, placement.assigned, now, aged=line.is_aged)

    async def _placed(self, tx: Tx, line: ReadyLine, room: _Room, now: datetime) -> Placement:
        """Page by page until there is no room: what no free worker can run must not hide what one can."""
        takers = room.takers(self.terms.stale, now)
        full = {one.id: one.capacity for one in room.workers if one.id not in takers}
        loads = {**room.loads, **full}
        aside = await asides(tx, now) if line.some_aside else NONE_ASIDE
        total = Placement([], [], [])
        for _ in range(0 if room.is_capped else _PAGES):
            free = room.free(loads, len(total.assigned))
            if room.workers and free <= 0:
                break
            wanted = min(free or _PAGE, _PAGE)
            page = await self._demands(tx, await line.next(tx, wanted))
            placement = place(page, room.workers, loads, self.terms, now, aside, alone=room.alone)
            total.assigned.extend(placement.assigned)
            total.unplaceable.extend(placement.unplaceable)
            total.passed_over.extend(placement.passed_over)
            for one in placement.assigned:
                loads[one.worker] = loads.get(one.worker, 0) + 1
            if len(page) < wanted:
                break
        return total

    async def _demands(self, tx: Tx, found: Sequence[Entry]) -> list[Waiting]:
        known = await self._definitions.get(tx, {entry.definition for entry in found})
        usual = {each: demand_of(definition, None) for each, definition in known.items()}
        return [
            Waiting(one, demand_of(known[one.definition], one.needs))
            if one.needs
            else Waiting(one, usual[one.definition])
            for one in found
        ]

    def _order(
        self, outbox: Outbox, given: HandOver, worker_of: Mapping[ExecutionId, WorkerId]
    ) -> None:
        """The worker tells that it was handed these: before it does, nobody could have seen them move."""
        for one in given.hand_offs():
            worker = worker_of[one.execution]
            self.hatch.put(worker, one)
            order = ExecutionScheduled(
                execution_id=one.execution,
                worker_id=worker,
                attempt=one.attempt,
                action_ref=one.action_ref,
                lease_expires_at=one.lease_expires_at,
                is_new=outbox.leave_to_worker(one.execution),
            )
            outbox.order(MessageType.EXECUTION_SCHEDULED, order, to=worker_queue_name(worker))

    async def _hand(
        self, tx: Tx, assigned: Sequence[Assignment], now: datetime, arrivals: Arrivals
    ) -> HandOver:
        """Arrivals will be written as their workers'; the others have rows, which change."""
        lease = now + self.terms.lease
        workers_of = {one.entry.execution: one.worker for one in assigned}
        unwritten = {one.id: one for one in arrivals.hand(workers_of, lease, now)}
        scheduled = [Answer([Scheduled.of(one) for one in unwritten.values()])]
        for worker, ids in _by_worker(assigned).items():
            if entries := [one for one in ids if one not in arrivals.entries]:
                await tx.later(_HAND, ids=entries, worker=worker, lease=lease)
            if rows := [one for one in ids if one not in unwritten]:
                told = await tx.answer_later(Scheduled, _SCHEDULE, ids=rows, worker=worker, now=now)
                scheduled.append(told)
        return HandOver([one.entry for one in assigned], lease, scheduled)


def _by_worker(assigned: Iterable[Assignment]) -> dict[WorkerId, list[ExecutionId]]:
    found: dict[WorkerId, list[ExecutionId]] = defaultdict(list)
    for one in assigned:
        found[one.worker].append(one.entry.execution)
    return found


def _tell_scheduled(outbox: Outbox, given: HandOver, now: datetime) -> None:
    for answer in given.scheduled:
        for one in answer.rows:
            outbox.moved(one, _S.REQUESTED, updated=now)


async def fail_unplaceable(
    tx: Tx, terms: Terms, outbox: Outbox, unplaceable: Sequence[Unplaceable], now: datetime
) -> None:
    """End what nobody can run. Its slot goes to the next in line, which a later pass will look at."""
    reasons = {one.execution: one.reason for one in unplaceable}
    lanes = await lanes_of_executions(tx, reasons.keys(), terms.queue, now)
    ready = set(await tx.all(ExecutionId, _STILL_READY, ids=sorted(reasons)))
    for reason in sorted({reasons[one] for one in ready}):
        ids = [one for one in ready if reasons[one] == reason]
        result = unrun_result(reason)
        for moved in await executions.end(tx, ids, _S.FAILED, _BEFORE_HAND_OFF, result, now):
            outbox.moved(moved, _S.REQUESTED)
    await lanes.leave(ready)
    await lanes.save()
