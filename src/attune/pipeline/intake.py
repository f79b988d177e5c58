"""The way into the lanes: for what somebody asks for, and for what rules ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from attune.catalog.versions import current_version
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions import steps as executions
from attune.pipeline.executions.actions import ActionBook
from attune.pipeline.executions.decide import unrun_result
from attune.pipeline.executions.model import Execution
from attune.pipeline.executions.requests import Drafts, Order, draft_orders, insert_orders
from attune.pipeline.outbox import Outbox
from attune.pipeline.queues.arranging import Arranger, Placed
from attune.pipeline.queues.model import Entry, TurnedAway
from attune.store.database import Tx

_NEW = frozenset({ExecutionStatus.REQUESTED})


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of each order, and who of them has a slot and waits for a worker."""

    answers: list[list[Execution] | Exception]
    ready: Sequence[Entry] = ()


async def take_orders(
    tx: Tx,
    actions: ActionBook,
    arranger: Arranger,
    outbox: Outbox,
    orders: Sequence[Order],
    now: datetime,
) -> Taken:
    """Each order whole or not at all: one that a queue or a quota has no room for is refused before it is written."""
    version = await current_version(tx)
    drafts = await draft_orders(tx, actions, version, orders, now)
    new = [one for number in range(len(orders)) for one in drafts.new_of(number)]
    if not new:
        return Taken(drafts.answers)
    placed = await arranger.place(tx, version, new, now)
    await _refuse(placed, drafts)
    made = await insert_orders(tx, outbox, drafts)
    turned = {one.execution for one in await _join(tx, outbox, placed, made, now)}
    answers = [await _as_they_are(tx, answer, turned) for answer in drafts.answers]
    return Taken(answers, placed.lanes.ready)


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


async def enter(
    tx: Tx, arranger: Arranger, outbox: Outbox, made: Sequence[Execution], now: datetime
) -> Sequence[Entry]:
    """Executions that are written already, into their lanes; who of them has a slot."""
    if not made:
        return ()
    placed = await arranger.place(tx, await current_version(tx), made, now)
    await _join(tx, outbox, placed, made, now)
    return placed.lanes.ready


async def _join(
    tx: Tx, outbox: Outbox, placed: Placed, made: Sequence[Execution], now: datetime
) -> list[TurnedAway]:
    turned = await placed.lanes.join(made, placed.places)
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
