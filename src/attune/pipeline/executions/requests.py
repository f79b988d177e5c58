"""Requests become executions, many orders in one transaction; a bad order is refused and harms no other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from attune.catalog.model import Action
from attune.kernel.errors import AttuneError, NotFound
from attune.kernel.ids import ExecutionId
from attune.kernel.messages import ExecutionRequested, MessageType
from attune.pipeline.executions.actions import ActionBook, KnownAction
from attune.pipeline.executions.decide import new_execution
from attune.pipeline.executions.model import Execution, Request
from attune.pipeline.executions.steps import insert_executions
from attune.pipeline.outbox import Outbox
from attune.store import schema
from attune.store.database import Tx

Allowed = Callable[[Action], None]


def anybody(_action: Action) -> None:
    """For requests that nobody has to be asked about."""


@dataclass(frozen=True, slots=True)
class Order:
    """Requests that are accepted together or not at all.

    `allowed` raises for an action that may not be run. `field` is where a list of requests stands in a body, for the
    errors; null where there is one request, which is the body.
    """

    requests: tuple[Request, ...]
    allowed: Allowed = anybody
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """For each order its executions or its refusal; `new` are those that did not exist before."""

    answers: list[list[Execution] | Exception]
    new: list[Execution]


async def place_orders(
    tx: Tx,
    book: ActionBook,
    version: int,
    outbox: Outbox,
    orders: Sequence[Order],
    now: datetime,
) -> Placed:
    refs = {request.action_ref for order in orders for request in order.requests}
    actions = await book.find(tx, version, refs, now)
    ids = await tx.next_ids(schema.execution, sum(len(order.requests) for order in orders))
    fresh = iter(ids)
    drafts = [
        _draft(order, actions, [next(fresh) for _ in order.requests], now) for order in orders
    ]
    new = [one for draft in drafts if not isinstance(draft, Exception) for one in draft]
    kept = await insert_executions(tx, new) if new else {}
    made = [one for one in new if kept[one.id].id == one.id]
    for one in made:
        item = ExecutionRequested(
            execution_id=one.id, action_id=one.action, action_ref=one.action_ref
        )
        outbox.put(MessageType.EXECUTION_REQUESTED, item)
    answers = [
        draft if isinstance(draft, Exception) else [kept[one.id] for one in draft]
        for draft in drafts
    ]
    return Placed(answers, made)


def _draft(
    order: Order, actions: Mapping[str, KnownAction], ids: Sequence[int], now: datetime
) -> list[Execution] | Exception:
    try:
        return [
            _execution(order, number, actions, ExecutionId(new), now)
            for number, new in enumerate(ids)
        ]
    except AttuneError as error:
        return error


def _execution(
    order: Order,
    number: int,
    actions: Mapping[str, KnownAction],
    execution_id: ExecutionId,
    now: datetime,
) -> Execution:
    request = order.requests[number]
    known = actions.get(request.action_ref)
    if known is None:
        ref = request.action_ref[:200]
        raise NotFound(f"There is no action '{ref}'.", action_ref=ref)
    order.allowed(known.action)
    field = "parameters" if order.field is None else f"{order.field}.{number}.parameters"
    return new_execution(
        request,
        known.action,
        known.definition,
        known.schema,
        id=execution_id,
        now=now,
        field=field,
    )
