"""The tests and workflows that belong to a pack's files."""

from fastapi import APIRouter

from attune.api.access import PACKS, permitted, readable
from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key
from attune.api.pack_models import (
    PackTestExecution,
    PackWorkflowSyncResponse,
    PackWorkflowValidationResponse,
)
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.kernel.errors import NotConfigured, NotFound


def pack_workflow_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/packs/{ref}", "packs")
    _add_tests(routes, parts)
    _add_workflows(routes, parts)
    return routes


def _add_tests(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("/tests", summary="List the runs of a pack's tests", responses=refusals(404))
    async def tests(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[PackTestExecution]:
        await database.read(readable, PACKS, rights, ref)
        return page_of(wanted, [], total=0)

    @routes.get("/tests/latest", summary="Show the last run of its tests", responses=refusals(404))
    async def latest_test(ref: Key, rights: RightsOf) -> Answer[PackTestExecution]:
        pack = await database.read(readable, PACKS, rights, ref)
        raise NotFound(f"The tests of '{pack.ref}' have not been run.", ref=pack.ref)

    @routes.post("/test", summary="Run a pack's tests", responses=refusals(404, 501))
    async def test(ref: Key, rights: RightsOf) -> Answer[PackTestExecution]:
        await database.read(readable, PACKS, rights, ref)
        raise NotConfigured("Running the tests of packs is not configured.")


def _add_workflows(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.post(
        "/workflows/sync",
        summary="Load a pack's workflow files again",
        responses=refusals(403, 404),
    )
    async def sync(ref: Key, rights: RightsOf) -> Answer[PackWorkflowSyncResponse]:
        pack = await database.read(permitted, PACKS, rights, ref, "configure", "update", "install")
        return Answer(data=PackWorkflowSyncResponse(pack_ref=pack.ref))

    @routes.post(
        "/workflows/validate", summary="Check a pack's workflow files", responses=refusals(404)
    )
    async def validate(ref: Key, rights: RightsOf) -> Answer[PackWorkflowValidationResponse]:
        pack = await database.read(readable, PACKS, rights, ref)
        return Answer(data=PackWorkflowValidationResponse(pack_ref=pack.ref))
