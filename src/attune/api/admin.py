"""/admin: all executions, their priority, and the queues as a whole. The settings are in `admin_settings`.

Executions of everybody and their order are for administrators. The list of queues is for whoever may look at
queues, and has those that he may see.
"""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query

from attune.api.admin_models import (
    PriorityRequest,
    PriorityResponse,
    QueueSummary,
    SystemQueueResponse,
)
from attune.api.administrators import require_administrator
from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.execution_models import ExecutionSummary
from attune.api.executions import wanted_filters
from attune.api.newest import NewestOf, NewestPage, newest_page
from attune.api.pages import Page, PageOf, Wanted, page_of
from attune.api.parts import ApiParts
from attune.api.row_ids import RowId, checked
from attune.catalog.runtime_settings import load_settings
from attune.identities.rights import Rights, refusal
from attune.identities.row_conditions import ALWAYS, NEVER, Columns, Condition
from attune.identities.steps import with_id, with_login
from attune.kernel.ids import ExecutionId, IdentityId
from attune.pipeline.executions.model import Priority
from attune.pipeline.executions.queries import (
    ExecutionFilters,
    count_executions,
    list_executions,
)
from attune.pipeline.listing import all_of, equals, pack_of, ref_like
from attune.pipeline.queues.overview import capacity, count_queues, list_queues, system_queue
from attune.store.database import Tx

_QUEUE_COLUMNS: Final = Columns(id=None, ref="x.action_ref", pack_ref=pack_of("x.action_ref"))
_LARGEST_ID: Final = 2**63 - 1
_WHO: Final = "Executions of everybody are managed"

Word = Annotated[str | None, Query(description="One of the five words, in any letter case.")]
User = Annotated[str | None, Query(description="Who asked for it: a login, or an identity's id.")]


async def wanted_of_all(
    filters: Annotated[ExecutionFilters, Depends(wanted_filters)],
    priority: Word = None,
    user: User = None,
) -> tuple[ExecutionFilters, Priority | None, str | None]:
    """What is empty is not asked for."""
    return filters, Priority.of(priority) if priority else None, user or None


WantedOfAll = Annotated[
    tuple[ExecutionFilters, Priority | None, str | None], Depends(wanted_of_all)
]


def admin_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/admin", "admin")
    _add_executions(routes, parts)
    _add_priority(routes, parts)
    _add_queues(routes, parts)
    return routes


def _add_executions(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("/executions", summary="List executions of everybody", responses=refusals(403))
    @routes.get("/executions/", summary="List executions of everybody", responses=refusals(403))
    async def list_all(
        rights: RightsOf, asked: WantedOfAll, wanted: NewestOf
    ) -> NewestPage[ExecutionSummary]:
        require_administrator(rights, _WHO)
        filters, priority, user = asked
        by_user = await database.read(_of_user, user)
        where = all_of([by_user, equals("priority", "of_priority", priority)])
        found = await database.read(list_executions, filters, where, wanted.window)
        total = None
        if wanted.include_total:
            total = await database.read(count_executions, filters, where)
        return newest_page(wanted, found, ExecutionSummary.model_validate, total)

    @routes.get("/executions/queue", summary="Count what waits and runs", responses=refusals(403))
    async def show_queue(rights: RightsOf) -> Answer[SystemQueueResponse]:
        require_administrator(rights, _WHO)
        return Answer(data=await database.read(_system_queue, parts))


def _add_priority(routes: APIRouter, parts: ApiParts) -> None:
    @routes.put(
        "/executions/{id}/priority",
        summary="Change its place in the queue",
        responses=refusals(403, 404, 409),
    )
    async def change(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
        body: PriorityRequest,
    ) -> Answer[PriorityResponse]:
        require_administrator(rights, _WHO)
        execution_id = ExecutionId(checked(id, "execution"))
        priority = Priority.of(body.priority)
        await parts.flow.reprioritize(execution_id, priority, rights.caller.login)
        return Answer(data=PriorityResponse(id=execution_id, priority=priority.word))


def _add_queues(routes: APIRouter, parts: ApiParts) -> None:
    @routes.get("/queues", summary="List the queues of all actions", responses=refusals(403))
    async def list_all(
        rights: RightsOf,
        wanted: PageOf,
        action_ref: Annotated[str | None, Query(description="A ref, or `pack.*`.")] = None,
        waiting: Annotated[bool, Query(description="Only those in which something waits.")] = False,
    ) -> Page[QueueSummary]:
        where = _queues_where(rights, action_ref or None, waiting=waiting)
        return await parts.database.read(_queues_page, where, wanted)


def _queues_where(rights: Rights, action_ref: str | None, *, waiting: bool) -> Condition:
    if not rights.may_ever("queues", "read"):
        raise refusal("queues", "read")
    readable = rights.condition("queues", "read", _QUEUE_COLUMNS)
    only = Condition("x.queue_length > 0", {}) if waiting else ALWAYS
    return all_of([readable, ref_like("action_ref", action_ref), only])


async def _queues_page(tx: Tx, where: Condition, wanted: Wanted) -> Page[QueueSummary]:
    found = await list_queues(tx, where, wanted.page_size, wanted.offset)
    return page_of(wanted, map(QueueSummary.of, found), total=await count_queues(tx, where))


async def _of_user(tx: Tx, user: str | None) -> Condition:
    """By login, else by id; nothing is of somebody who does not exist."""
    if user is None:
        return ALWAYS
    found = await with_login(tx, user)
    if found is None and user.isascii() and user.isdecimal() and int(user) <= _LARGEST_ID:
        found = await with_id(tx, IdentityId(int(user)))
    return equals("executor", "of_user", found.identity.id) if found else NEVER


async def _system_queue(tx: Tx, parts: ApiParts) -> SystemQueueResponse:
    most = (await load_settings(tx)).max_concurrent_executions
    if most is None:
        most = await capacity(tx, parts.flow.terms.stale, parts.clock.now())
    return SystemQueueResponse.of(await system_queue(tx), most)
