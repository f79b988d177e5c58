"""/enforcements: which rules answered which events, and with what."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.enforcement_models import EnforcementResponse, EnforcementSummary
from attune.api.newest import NewestOf, NewestPage, newest_page
from attune.api.parts import ApiParts
from attune.api.row_access import readable_by
from attune.api.row_ids import FilterId, RowId, checked, unknown
from attune.kernel.ids import EnforcementId, EventId, RuleId
from attune.pipeline.enforcements.model import EnforcementStatus
from attune.pipeline.enforcements.queries import (
    EnforcementFilters,
    count_enforcements,
    find_enforcement,
    list_enforcements,
)

_RefOrPack = Annotated[str | None, Query(description="A ref, or `pack.*`.")]


async def wanted_filters(
    rule: FilterId = None,
    event: FilterId = None,
    status: EnforcementStatus | None = None,
    trigger_ref: _RefOrPack = None,
    rule_ref: _RefOrPack = None,
) -> EnforcementFilters:
    return EnforcementFilters(
        rule=None if rule is None else RuleId(rule),
        event=None if event is None else EventId(event),
        status=status,
        trigger_ref=trigger_ref or None,
        rule_ref=rule_ref or None,
    )


def enforcement_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/enforcements", "enforcements")
    database = parts.database

    @routes.get("", summary="List enforcements, newest first", responses=refusals(403))
    async def list_all(
        rights: RightsOf,
        filters: Annotated[EnforcementFilters, Depends(wanted_filters)],
        wanted: NewestOf,
    ) -> NewestPage[EnforcementSummary]:
        readable = readable_by(rights, "enforcements")
        found = await database.read(list_enforcements, filters, readable, wanted.window)
        total = None
        if wanted.include_total:
            total = await database.read(count_enforcements, filters, readable)
        return newest_page(wanted, found, EnforcementSummary.model_validate, total)

    @routes.get("/{id}", summary="Show an enforcement", responses=refusals(403, 404))
    async def get_enforcement(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Answer[EnforcementResponse]:
        readable = readable_by(rights, "enforcements")
        enforcement_id = EnforcementId(checked(id, "enforcement"))
        found = await database.read(find_enforcement, enforcement_id, readable)
        if found is None:
            raise unknown(id, "enforcement")
        return Answer(data=EnforcementResponse.of(found))

    return routes
