"""Requests become executions, many orders in one transaction; a bad order is refused and harms no other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from attune.catalog.model import Action
from attune.kernel.errors import AttuneError, NotFound
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.actions import ActionBook, KnownAction
from attune.pipeline.executions.decide import new_execution
from attune.pipeline.executions.model import Execution, Request
from attune.pipeline.executions.steps import by_keys, insert_keyed
from attune.pipeline.outbox import Outbox
from attune.store import schema
from attune.store.database import Tx

Allowed = Callable[[Action], None]


class Disproved(AttuneError):
    """An order was made under a premise that does not hold any more. Nothing was made of it."""

    code = "disproved"


class Premise(Protocol):
    """What somebody believes of the database without having looked."""

    async def ask(self, tx: Tx, /) -> Callable[[], bool]:
        """Whether it holds, to be called when what was put off has settled."""


def anybody(_action: Action) -> None:
    """For requests that nobody has to be asked about."""


@dataclass(frozen=True, slots=True)
class Order:
    """Requests that are accepted together or not at all.

    `allowed` raises for an action that may not be run; it may rest on a `premise`. `field` is where a list of requests
    stands in a body, for the errors; null where there is one request, which is the body.
    """

    requests: tuple[Request, ...]
    allowed: Allowed = anybody
    field: str | None = None
    premise: Premise | None = None


@dataclass(frozen=True, slots=True)
class Drafts:
    """For each order its executions or its refusal, and which of them were there before, under the same key."""

    answers: list[list[Execution] | Exception]
    known: frozenset[ExecutionId]

    def new_of(self, number: int) -> list[Execution]:
        """What an order asks for that does not exist yet."""
        answer = self.answers[number]
        if isinstance(answer, Exception):
            return []
        return [one for one in answer if one.id not in self.known]


async def draft_orders(
    tx: Tx, book: ActionBook, version: int, orders: Sequence[Order], now: datetime
) -> Drafts:
    """What the orders come to; nothing is written."""
    refs = {request.action_ref for order in orders for request in order.requests}
    actions = await book.find(tx, version, refs, now)
    known = await _known(tx, orders)
    ids = await tx.next_ids(schema.execution, sum(len(order.requests) for order in orders))
    fresh = iter(ids)
    answers = [
        _draft(order, actions, known, [next(fresh) for _ in order.requests], now)
        for order in orders
    ]
    return Drafts(answers, frozenset(one.id for one in known.values()))


@dataclass(frozen=True, slots=True)
class Premises:
    """Those of the orders that have one, asked for along with the statements that follow."""

    asked: Mapping[int, Callable[[], bool]]

    @classmethod
    async def of(cls, tx: Tx, orders: Sequence[Order]) -> "Premises":
        stated = [(number, one.premise) for number, one in enumerate(orders)]
        return cls({number: await each.ask(tx) for number, each in stated if each is not None})

    def judge(self, drafts: Drafts) -> None:
        """Before anything is written: an order whose premise is gone comes to nothing, also one that came to a refusal."""
        for number, holds in self.asked.items():
            if not holds():
                drafts.answers[number] = Disproved("What this was asked under has changed.")


async def accept_orders(tx: Tx, outbox: Outbox, drafts: Drafts) -> list[Execution]:
    """Write what has a key; an order whose key somebody else has taken meanwhile gets theirs. All that is new then."""
    orders = range(len(drafts.answers))
    new = [one for number in orders for one in drafts.new_of(number)]
    kept = await insert_keyed(tx, [one for one in new if one.idempotency_key])
    for number, answer in enumerate(drafts.answers):
        if not isinstance(answer, Exception):
            drafts.answers[number] = [kept.get(one.id, one) for one in answer]
    made = [one for one in new if kept.get(one.id, one).id == one.id]
    for one in made:
        outbox.created(one)
    return made


async def _known(tx: Tx, orders: Sequence[Order]) -> dict[str, Execution]:
    keys = {r.idempotency_key for order in orders for r in order.requests if r.idempotency_key}
    return await by_keys(tx, keys) if keys else {}


def _draft(
    order: Order,
    actions: Mapping[str, KnownAction],
    known: Mapping[str, Execution],
    ids: Sequence[int],
    now: datetime,
) -> list[Execution] | Exception:
    """Also one that is known already is checked: whoever may not ask for it is not given it either."""
    try:
        drafts = [
            _execution(order, number, actions, ExecutionId(new), now)
            for number, new in enumerate(ids)
        ]
        return [known.get(one.idempotency_key or "", one) for one in drafts]
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
