"""/executions: found again, counted, shown. Asking for them is in `execution_requests`."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.errors import WrongRequest
from attune.api.execution_access import readable_by
from attune.api.execution_models import ExecutionResponse, ExecutionStats, ExecutionSummary
from attune.api.execution_views import ExecutionViews
from attune.api.newest import NewestOf, NewestPage, WantedNewest, newest_page
from attune.api.parts import ApiParts
from attune.api.row_ids import FilterId, RowId, checked, unknown
from attune.identities.rights import Rights
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import EnforcementId, ExecutionId, IdentityId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.queries import (
    ExecutionFilters,
    count_executions,
    find_execution,
    list_executions,
    stats,
)

_RefOrPack = Annotated[str | None, Query(description="A ref, or `pack.*`.")]


async def wanted_filters(
    status: Annotated[str | None, Query(description="One status.")] = None,
    action_ref: _RefOrPack = None,
    pack_name: Annotated[str | None, Query(description="The pack of the action.")] = None,
    rule_ref: _RefOrPack = None,
    trigger_ref: _RefOrPack = None,
    executor: FilterId = None,
    result_contains: Annotated[
        str | None, Query(max_length=1000, description="Some text of the result, in any case.")
    ] = None,
    enforcement: FilterId = None,
    parent: FilterId = None,
    top_level_only: Annotated[bool, Query(description="Only those without a parent.")] = False,
) -> ExecutionFilters:
    """What is empty is not asked for."""
    return ExecutionFilters(
        status=_status(status) if status else None,
        action_ref=action_ref or None,
        pack_name=pack_name or None,
        rule_ref=rule_ref or None,
        trigger_ref=trigger_ref or None,
        executor=None if executor is None else IdentityId(executor),
        result_contains=result_contains or None,
        enforcement=None if enforcement is None else EnforcementId(enforcement),
        parent=None if parent is None else ExecutionId(parent),
        top_level_only=top_level_only,
    )


def execution_routes(parts: ApiParts, views: ExecutionViews) -> APIRouter:
    routes = router("/api/v1/executions", "executions")
    _add_lists(routes, parts)
    _add_looking(routes, parts, views)
    return routes


def _add_lists(routes: APIRouter, parts: ApiParts) -> None:
    async def page(
        rights: Rights, filters: ExecutionFilters, wanted: WantedNewest
    ) -> NewestPage[ExecutionSummary]:
        database, readable = parts.database, readable_by(rights)
        found = await database.read(list_executions, filters, readable, wanted.window)
        total = None
        if wanted.include_total:
            total = await database.read(count_executions, filters, readable)
        return newest_page(wanted, found, ExecutionSummary.model_validate, total)

    @routes.get("", summary="List executions, newest first", responses=refusals())
    async def list_all(
        rights: RightsOf,
        filters: Annotated[ExecutionFilters, Depends(wanted_filters)],
        wanted: NewestOf,
    ) -> NewestPage[ExecutionSummary]:
        return await page(rights, filters, wanted)

    @routes.get("/status/{status}", summary="List those in a status", responses=refusals(400))
    async def list_in_status(
        status: str, rights: RightsOf, wanted: NewestOf
    ) -> NewestPage[ExecutionSummary]:
        try:
            filters = ExecutionFilters(status=_status(status))
        except InvalidInput as error:
            raise WrongRequest(error.message, **error.fields) from error
        return await page(rights, filters, wanted)

    @routes.get(
        "/enforcement/{id}", summary="List those of an enforcement", responses=refusals(404)
    )
    async def list_of_enforcement(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
        wanted: NewestOf,
    ) -> NewestPage[ExecutionSummary]:
        enforcement = EnforcementId(checked(id, "enforcement"))
        return await page(rights, ExecutionFilters(enforcement=enforcement), wanted)


def _add_looking(routes: APIRouter, parts: ApiParts, views: ExecutionViews) -> None:
    database = parts.database

    @routes.get("/stats", summary="Count executions by how they are", responses=refusals())
    async def show_stats(rights: RightsOf) -> Answer[ExecutionStats]:
        found = await database.read(stats, readable_by(rights))
        return Answer(data=ExecutionStats.model_validate(found))

    @routes.get(
        "/{id}",
        summary="Show an execution",
        response_model=Answer[ExecutionResponse],
        responses=refusals(404),
    )
    async def get_execution(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Response:
        execution_id = ExecutionId(checked(id, "execution"))
        found = await database.read(find_execution, execution_id, readable_by(rights))
        if found is None:
            raise unknown(id, "execution")
        return await views.one(found)


def _status(word: str) -> ExecutionStatus:
    try:
        return ExecutionStatus(word.lower())
    except ValueError as error:
        words = ", ".join(ExecutionStatus)
        raise InvalidInput(f"status: must be one of {words}", field="status") from error
