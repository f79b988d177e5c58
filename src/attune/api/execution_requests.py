"""/executions: asked for, one or many, and cancelled."""

from collections.abc import Sequence

from fastapi import APIRouter, Response

from attune.api.access import target_of
from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.execution_access import check_cancellable
from attune.api.execution_models import ExecuteManyRequest, ExecuteRequest, ExecutionResponse
from attune.api.execution_views import ExecutionViews
from attune.api.fields import given
from attune.api.parts import ApiParts
from attune.api.repeats import check_execution_keys, of_others
from attune.api.row_ids import RowId, checked
from attune.catalog.model import Action
from attune.catalog.retry_rules import retry_faults, retry_of
from attune.catalog.steps.checks import refuse
from attune.identities.constraints import execution_of
from attune.identities.rights import Rights
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import Execution, Priority, Request
from attune.pipeline.executions.requests import Order

_FIELD = "executions"


def execution_request_routes(parts: ApiParts, views: ExecutionViews) -> APIRouter:
    routes = router("/api/v1/executions", "executions")
    _add_requests(routes, parts, views)
    _add_cancel(routes, parts, views)
    return routes


def _add_requests(routes: APIRouter, parts: ApiParts, views: ExecutionViews) -> None:
    @routes.post(
        "/execute",
        status_code=201,
        summary="Run an action",
        response_model=Answer[ExecutionResponse],
        responses=refusals(403, 404, 409, 429),
    )
    async def execute(rights: RightsOf, body: ExecuteRequest) -> Response:
        [made] = await _ordered(parts, rights, [body], None)
        return await views.one(made, 201)

    @routes.post(
        "/execute-many",
        status_code=201,
        summary="Run many actions, all or none",
        response_model=Answer[list[ExecutionResponse]],
        responses=refusals(403, 404, 409, 429),
    )
    async def execute_many(rights: RightsOf, body: ExecuteManyRequest) -> Response:
        made = await _ordered(parts, rights, body.executions, _FIELD) if body.executions else []
        return await views.all(made, 201)


def _add_cancel(routes: APIRouter, parts: ApiParts, views: ExecutionViews) -> None:
    @routes.post(
        "/{id}/cancel",
        summary="Cancel it",
        response_model=Answer[ExecutionResponse],
        responses=refusals(403, 404, 409),
    )
    async def cancel(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Response:
        execution_id = ExecutionId(checked(id, "execution"))
        await parts.database.read(check_cancellable, rights, execution_id)
        return await views.one(await parts.flow.cancel(execution_id))


async def _ordered(
    parts: ApiParts, rights: Rights, bodies: Sequence[ExecuteRequest], field: str | None
) -> list[Execution]:
    requests = tuple(_request(body, rights, field, n) for n, body in enumerate(bodies))
    await _check_gifts(parts, rights, bodies, field)
    await check_execution_keys(parts.database, rights, {one.idempotency_key for one in requests})

    def allowed(action: Action) -> None:
        rights.require("actions", "execute", target_of(action))

    made = await parts.flow.request(Order(requests, allowed, field))
    parts.feed.expect(made)
    await check_execution_keys(parts.database, rights, of_others(requests, made))
    return made


def _request(body: ExecuteRequest, rights: Rights, field: str | None, number: int) -> Request:
    """What a running execution asks for is its child, and runs for the same identity."""
    values = given(body)
    if "retry" in values:
        place = "retry" if field is None else f"{field}.{number}.retry"
        refuse(retry_faults(values["retry"], place))
        values["retry"] = retry_of(values["retry"])
    values["priority"] = Priority.of(values.get("priority", Priority.NORMAL.word))
    parent = execution_of(rights.caller) if rights.is_execution else None
    return Request(**values, executor=rights.caller.identity, parent=parent)


async def _check_gifts(
    parts: ApiParts, rights: Rights, bodies: Sequence[ExecuteRequest], field: str | None
) -> None:
    """Each combination of sets once, however many executions are to have it."""
    known: set[tuple[str, ...]] = set()
    for number, body in enumerate(bodies):
        refs = tuple(body.permission_set_refs or ())
        if refs and refs not in known:
            known.add(refs)
            place = "permission_set_refs"
            full = place if field is None else f"{field}.{number}.{place}"
            await parts.grants.check_gift(rights, refs, full)
