"""/runtimes: looked up, made by hand, changed."""

from datetime import datetime

from fastapi import APIRouter

from attune.api.access import PACKS, RUNTIMES, permitted, readable, readable_page
from attune.api.answers import Answer, Success
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key, changed, given
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.api.runtime_models import (
    CreateRuntimeRequest,
    RuntimeResponse,
    RuntimeSummary,
    UpdateRuntimeRequest,
)
from attune.catalog.model import Runtime
from attune.catalog.steps.runtimes import (
    NewRuntime,
    RuntimeChanges,
    create_runtime,
    delete_runtime,
    update_runtime,
)
from attune.identities.constraints import Target
from attune.identities.rights import Rights
from attune.identities.row_conditions import Condition
from attune.store.database import Tx


def runtime_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1", "runtimes")
    _add_looking(routes, parts)
    _add_changing(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("/runtimes", summary="List runtimes", responses=refusals())
    async def list_runtimes(rights: RightsOf, wanted: PageOf) -> Page[RuntimeSummary]:
        found = await database.read(readable_page, RUNTIMES, rights, wanted)
        return page_of(wanted, map(RuntimeSummary.model_validate, found.items), total=found.total)

    @routes.get("/packs/{ref}/runtimes", summary="List a pack's runtimes", responses=refusals(404))
    async def list_of_pack(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[RuntimeSummary]:
        pack = await database.read(readable, PACKS, rights, ref)
        of_pack = Condition("pack = :of_pack", {"of_pack": pack.id})
        found = await database.read(readable_page, RUNTIMES, rights, wanted, of_pack)
        return page_of(wanted, map(RuntimeSummary.model_validate, found.items), total=found.total)

    @routes.get("/runtimes/{ref}", summary="Show a runtime", responses=refusals(404))
    async def get_runtime(ref: Key, rights: RightsOf) -> Answer[RuntimeResponse]:
        return _shown(await database.read(readable, RUNTIMES, rights, ref))


def _add_changing(routes: APIRouter, parts: ApiParts) -> None:
    database, clock = parts.database, parts.clock

    @routes.post(
        "/runtimes",
        status_code=201,
        summary="Make a runtime by hand",
        responses=refusals(403, 404, 409),
    )
    async def create(rights: RightsOf, body: CreateRuntimeRequest) -> Answer[RuntimeResponse]:
        rights.require("runtimes", "create", Target(ref=body.ref, pack_ref=body.pack_ref))
        new = NewRuntime(**given(body))
        return _shown(await database.run(_create, rights, new, clock.now()))

    @routes.put("/runtimes/{ref}", summary="Change a runtime", responses=refusals(403, 404))
    async def update(
        ref: Key, rights: RightsOf, body: UpdateRuntimeRequest | None = None
    ) -> Answer[RuntimeResponse]:
        changes = RuntimeChanges(**changed(body))
        return _shown(await database.run(_update, rights, ref, changes, clock.now()))

    @routes.delete("/runtimes/{ref}", summary="Delete a runtime", responses=refusals(403, 404))
    async def delete(ref: Key, rights: RightsOf) -> Success:
        gone = await database.run(_delete, rights, ref)
        return Success(message=f"The runtime '{gone.ref}' was deleted.")


async def _create(tx: Tx, rights: Rights, new: NewRuntime, now: datetime) -> Runtime:
    if new.pack_ref is not None:
        await readable(tx, PACKS, rights, new.pack_ref)
    return await create_runtime(tx, new, now)


async def _update(
    tx: Tx, rights: Rights, ref: str, changes: RuntimeChanges, now: datetime
) -> Runtime:
    runtime = await permitted(tx, RUNTIMES, rights, ref, "update")
    return await update_runtime(tx, runtime.id, changes, now)


async def _delete(tx: Tx, rights: Rights, ref: str) -> Runtime:
    runtime = await permitted(tx, RUNTIMES, rights, ref, "delete")
    return await delete_runtime(tx, runtime.id)


def _shown(runtime: Runtime) -> Answer[RuntimeResponse]:
    return Answer(data=RuntimeResponse.model_validate(runtime))
