"""Giving what is ready to workers: the hand-off, in the transaction that decides it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from attune.bus.topology import worker_queue_name
from attune.catalog.definitions import Definitions
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionScheduled, MessageType
from attune.kernel.statuses import ExecutionStatus, sources_through
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.outbox import Moved, Outbox
from attune.pipeline.queues.model import Entry
from attune.pipeline.queues.steps import lanes_of_executions
from attune.pipeline.scheduling.asides import asides
from attune.pipeline.scheduling.cap import Cap, lock_cap, log_hand_offs
from attune.pipeline.scheduling.compatibility import demand_of
from attune.pipeline.scheduling.decide import NONE_ASIDE, place
from attune.pipeline.scheduling.line import ReadyLine, ready_line
from attune.pipeline.scheduling.model import (
    Assignment,
    Placement,
    Terms,
    Unplaceable,
    Waiting,
)
from attune.pipeline.scheduling.setbacks import Setbacks
from attune.pipeline.workers import steps as workers
from attune.pipeline.workers.decide import takes_work
from attune.pipeline.workers.model import Worker
from attune.store.database import Tx

_S = ExecutionStatus

_BEFORE_HAND_OFF: Final = frozenset({_S.REQUESTED, _S.SCHEDULING})
_PAGE: Final = 500
_PAGES: Final = 20
_STILL_READY: Final = """
    SELECT execution FROM entry WHERE execution = ANY(:ids::bigint[]) AND state = 'ready'
"""
_HAND: Final = """
    UPDATE entry SET state = 'handed', reason = NULL, worker = v.worker, lease_expires_at = :lease
      FROM ROWS(:assigned AS v(execution bigint, worker bigint))
     WHERE entry.execution = v.execution
"""
_SCHEDULE: Final = """
    UPDATE execution SET status = 'scheduled', worker = v.worker, updated = :now
      FROM ROWS(:assigned AS v(execution bigint, worker bigint))
     WHERE execution.id = v.execution AND execution.status = ANY(:sources::text[])
    RETURNING execution.id, execution.action, execution.action_ref, execution.attempt, execution.status
"""


class Pass(msgspec.Struct, frozen=True):
    """What one pass did: which were handed over, in their order, and which nobody can run.

    `passed_over` are for another worker than the one that was asked.
    """

    handed: tuple[ExecutionId, ...] = ()
    unplaceable: tuple[Unplaceable, ...] = ()
    passed_over: tuple[ExecutionId, ...] = ()


@dataclass(frozen=True, slots=True)
class _Room:
    """The workers that are locked, and the cap of the whole system. `alone`: there may be others beside them."""

    workers: Sequence[Worker]
    cap: Cap | None
    alone: bool

    def takers(self, silence: timedelta, now: datetime) -> set[WorkerId]:
        """Those that may be handed something now; the others are there, and count as full."""
        return {one.id for one in self.workers if takes_work(one, silence, now)}

    def free(self, loads: Mapping[WorkerId, int], given: int) -> int:
        """How many more they can take, when so many were given already."""
        free = sum(max(one.capacity - loads.get(one.id, 0), 0) for one in self.workers)
        return free if self.cap is None else min(free, self.cap.free - given)


class Scheduler:
    """Steps that need what a process holds: its terms, and the definitions that it has met."""

    def __init__(self, terms: Terms, definitions: Definitions) -> None:
        self.terms = terms
        self.setbacks = Setbacks()
        self._definitions = definitions

    async def assign(self, tx: Tx, outbox: Outbox, now: datetime) -> Pass:
        """Hand over everything that is ready and finds room among all workers."""
        return await self._assign(tx, None, outbox, now)

    async def assign_to(self, tx: Tx, worker: WorkerId, outbox: Outbox, now: datetime) -> Pass:
        """Hand over to this worker alone: what it has just finished makes room for as much.

        It says nothing of what nobody can run, because it has not asked the others.
        """
        done = await self._assign(tx, worker, outbox, now)
        return Pass(done.handed, passed_over=done.passed_over)

    async def _assign(self, tx: Tx, only: WorkerId | None, outbox: Outbox, now: datetime) -> Pass:
        line = await ready_line(tx, now)
        if line is None:
            return Pass()
        cap = await lock_cap(tx) if line.cap is not None else None
        if cap is not None and cap.free == 0:
            return Pass()
        room = _Room(await workers.lock_present(tx, only=only), cap, alone=only is not None)
        if only is not None and not room.takers(self.terms.stale, now):
            return Pass()
        placement = await self._placed(tx, line, room, now)
        await self._hand(tx, placement.assigned, outbox, now)
        if cap is not None:
            await log_hand_offs(tx, cap, placement.assigned, now, aged=line.is_aged)
        handed = tuple(one.entry.execution for one in placement.assigned)
        return Pass(handed, tuple(placement.unplaceable), tuple(placement.passed_over))

    async def _placed(self, tx: Tx, line: ReadyLine, room: _Room, now: datetime) -> Placement:
        """Page by page until there is no room: what no free worker can run must not hide what one can."""
        loads = await workers.loads(tx, [worker.id for worker in room.workers])
        takers = room.takers(self.terms.stale, now)
        loads |= {one.id: one.capacity for one in room.workers if one.id not in takers}
        aside = await asides(tx, now) if line.some_aside else NONE_ASIDE
        total = Placement([], [], [])
        for _ in range(_PAGES):
            free = room.free(loads, len(total.assigned))
            if room.workers and free <= 0:
                break
            page = await self._demands(tx, await line.next(tx, min(free or _PAGE, _PAGE)))
            if not page:
                break
            placement = place(page, room.workers, loads, self.terms, now, aside, alone=room.alone)
            total.assigned.extend(placement.assigned)
            total.unplaceable.extend(placement.unplaceable)
            total.passed_over.extend(placement.passed_over)
            for one in placement.assigned:
                loads[one.worker] = loads.get(one.worker, 0) + 1
        return total

    async def _demands(self, tx: Tx, found: Sequence[Entry]) -> list[Waiting]:
        known = await self._definitions.get(tx, {entry.definition for entry in found})
        return [Waiting(one, demand_of(known[one.definition], one.needs)) for one in found]

    async def _hand(
        self, tx: Tx, assigned: Sequence[Assignment], outbox: Outbox, now: datetime
    ) -> None:
        if not assigned:
            return
        lease = now + self.terms.lease
        pairs = [(one.entry.execution, one.worker) for one in assigned]
        await tx.execute(_HAND, assigned=pairs, lease=lease)
        sources = sorted(sources_through(_S.SCHEDULING, _S.SCHEDULED))
        moved = await tx.all(Moved, _SCHEDULE, assigned=pairs, sources=sources, now=now)
        by_id = {one.id: one for one in moved}
        for execution, worker in pairs:
            if (one := by_id.get(execution)) is not None:
                outbox.moved(one, _S.REQUESTED)
                order = _order(one, worker, lease)
                outbox.put(MessageType.EXECUTION_SCHEDULED, order, to=worker_queue_name(worker))


def _order(moved: Moved, worker: WorkerId, lease: datetime) -> ExecutionScheduled:
    return ExecutionScheduled(
        execution_id=moved.id,
        worker_id=worker,
        attempt=moved.attempt,
        action_ref=moved.action_ref,
        lease_expires_at=lease,
    )


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
