"""/executions: asked for, one or many, and cancelled."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Response

from attune.api.access import target_of
from attune.api.answers import Answer
from attune.api.authentication import Asker, AskerOf, RightsOf
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
from attune.kernel.errors import Forbidden
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import Execution, Priority, Request
from attune.pipeline.executions.requests import Disproved, Order, Premise

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
    async def execute(asker: AskerOf, body: ExecuteRequest) -> Response:
        [made] = await _ordered(parts, asker, [body], None)
        return await views.one(made, 201)

    @routes.post(
        "/execute-many",
        status_code=201,
        summary="Run many actions, all or none",
        response_model=Answer[list[ExecutionResponse]],
        responses=refusals(403, 404, 409, 429),
    )
    async def execute_many(asker: AskerOf, body: ExecuteManyRequest) -> Response:
        made = await _ordered(parts, asker, body.executions, _FIELD)
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
    parts: ApiParts, asker: Asker, bodies: Sequence[ExecuteRequest], field: str | None
) -> list[Execution]:
    """What he was last seen to hold only ever lets through what the step confirms; it refuses nobody."""
    if asker.believed is not None and bodies and all(map(_is_plain, bodies)):
        rights, premise = asker.believed
        with suppress(Forbidden, Disproved):
            return await _accepted(parts, rights, bodies, field, premise)
    return await _accepted(parts, await asker.rights(), bodies, field)


def _is_plain(body: ExecuteRequest) -> bool:
    """Whether the step asks all that has to be known about him."""
    return not (body.permission_set_refs or body.idempotency_key)


async def _accepted(
    parts: ApiParts,
    rights: Rights,
    bodies: Sequence[ExecuteRequest],
    field: str | None,
    premise: Premise | None = None,
) -> list[Execution]:
    if not bodies:
        return []
    requests = _requests(bodies, rights, field)
    await _check_gifts(parts, rights, bodies, field)
    await check_execution_keys(parts.database, rights, {one.idempotency_key for one in requests})

    def allowed(action: Action) -> None:
        rights.require("actions", "execute", target_of(action))

    made = await parts.flow.request(Order(requests, allowed, field, premise))
    parts.feed.expect(made)
    await check_execution_keys(parts.database, rights, of_others(requests, made))
    return made


def _requests(
    bodies: Sequence[ExecuteRequest], rights: Rights, field: str | None
) -> tuple[Request, ...]:
    """What a running execution asks for is its child, and runs for the same identity."""
    executor = rights.caller.identity
    parent = execution_of(rights.caller) if rights.is_execution else None
    return tuple(
        Request(**_values(body, field, number), executor=executor, parent=parent)
        for number, body in enumerate(bodies)
    )


def _values(body: ExecuteRequest, field: str | None, number: int) -> dict[str, Any]:
    values = given(body)
    if "retry" in values:
        place = "retry" if field is None else f"{field}.{number}.retry"
        refuse(retry_faults(values["retry"], place))
        values["retry"] = retry_of(values["retry"])
    if "priority" in values:
        values["priority"] = Priority.of(values["priority"])
    return values


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
