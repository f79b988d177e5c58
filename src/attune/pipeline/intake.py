"""The way into the lanes: for what somebody asks for, and for what rules ask for."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from attune.catalog.versions import Versions
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.actions import ActionBook
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.executions.model import Execution
from attune.pipeline.executions.requests import (
    Drafts,
    Order,
    Premises,
    accept_orders,
    draft_orders,
)
from attune.pipeline.outbox import Outbox
from attune.pipeline.queues.arranging import Along, Arranger, Placed
from attune.pipeline.queues.model import TurnedAway
from attune.pipeline.queues.steps import Lanes
from attune.store import schema
from attune.store.database import Tx

_FEW: Final = 50
_NEW: Final = frozenset({ExecutionStatus.REQUESTED})
_UNWRITE: Final = "DELETE FROM execution WHERE id = ANY(:ids::bigint[])"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of each order, and the lanes that they joined, if there is anything new."""

    answers: list[list[Execution] | Exception]
    lanes: Lanes | None = None


class Intake:
    """What a process knows that brings executions into their lanes.

    `along` asks for the workers in the round trip that locks the lanes, where these let everybody through and it is quick.
    """

    def __init__(self, versions: Versions, actions: ActionBook, arranger: Arranger) -> None:
        self._versions = versions
        self._actions = actions
        self._arranger = arranger

    async def take_orders(
        self, tx: Tx, outbox: Outbox, orders: Sequence[Order], now: datetime, along: Along | None
    ) -> Taken:
        """Each order whole or not at all: one that a queue or a quota has no room for is refused, and leaves nothing."""
        version = await self._versions.expect(tx)
        premises = await Premises.of(tx, orders)
        drafts = await draft_orders(tx, self._actions, version.number, orders, now)
        new = [one for number in range(len(orders)) for one in drafts.new_of(number)]
        if not new:
            await version.confirm(tx)
            premises.judge(drafts)
            return Taken(drafts.answers)
        written = await _write_early(tx, new)
        placed = await self._arranger.place(
            tx, version, new, now, along if _is_quick(new) else None
        )
        premises.judge(drafts)
        await _refuse(placed, drafts)
        made = await accept_orders(tx, outbox, drafts)
        await _unwrite(tx, written.difference(one.id for one in made))
        turned = {one.execution for one in await _join(tx, outbox, placed, made, written, now)}
        answers = [await _as_they_are(tx, answer, turned) for answer in drafts.answers]
        return Taken(answers, placed.lanes)

    async def enter(
        self,
        tx: Tx,
        outbox: Outbox,
        made: Sequence[Execution],
        now: datetime,
        along: Along | None,
    ) -> Lanes:
        """What rules ask for, into their lanes."""
        version = await self._versions.expect(tx)
        written = await _write_early(tx, made)
        placed = await self._arranger.place(
            tx, version, made, now, along if _is_quick(made) else None
        )
        await _join(tx, outbox, placed, made, written, now)
        return placed.lanes


def _is_quick(new: Sequence[Execution]) -> bool:
    """Whether the workers may be held while these are taken in. Many would keep them from others for long; and a key may
    be in the hands of somebody who waits for the workers."""
    return len(new) <= _FEW and not any(one.idempotency_key for one in new)


async def _write_early(tx: Tx, new: Sequence[Execution]) -> frozenset[ExecutionId]:
    """Write them before their lanes are locked, if they are many: nobody is to wait for that. Those that were written."""
    early = [] if len(new) <= _FEW else [one for one in new if not one.idempotency_key]
    await tx.insert_later(schema.execution, early)
    return frozenset(one.id for one in early)


async def _unwrite(tx: Tx, refused: Collection[ExecutionId]) -> None:
    if refused:
        await tx.later(_UNWRITE, ids=sorted(refused))


async def _refuse(placed: Placed, drafts: Drafts) -> None:
    """Orders that find no room get the refusal as their answer. A key that comes twice needs one place."""
    keys: set[str] = set()
    for number in range(len(drafts.answers)):
        new = [one for one in drafts.new_of(number) if one.idempotency_key not in keys]
        wanted = {one.id: placed.places[one.id] for one in new}
        refusal = await placed.lanes.refusal(wanted) if wanted else None
        if refusal is not None:
            drafts.answers[number] = refusal
        else:
            keys.update(one.idempotency_key for one in new if one.idempotency_key)


async def _join(
    tx: Tx,
    outbox: Outbox,
    placed: Placed,
    made: Sequence[Execution],
    written: Collection[ExecutionId],
    now: datetime,
) -> list[TurnedAway]:
    """Those that have a key have rows, too."""
    unwritten = {one.id for one in made if not one.idempotency_key and one.id not in written}
    turned = await placed.lanes.join(made, placed.places, unwritten)
    await placed.lanes.save()
    for one in turned:
        result = unrun_result(one.text)
        for moved in await executions.end(tx, [one.execution], one.status, _NEW, result, now):
            outbox.moved(moved, ExecutionStatus.REQUESTED)
    return turned


async def _as_they_are(
    tx: Tx, answer: list[Execution] | Exception, turned: set[ExecutionId]
) -> list[Execution] | Exception:
    """What was turned away has ended, and whoever asked for it sees that."""
    if isinstance(answer, Exception) or not turned.intersection(one.id for one in answer):
        return answer
    return [
        await executions.get_execution(tx, one.id) if one.id in turned else one for one in answer
    ]
