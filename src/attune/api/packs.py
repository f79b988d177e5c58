"""/packs: what there is, packs made by hand, and their configuration. Installing them is in `pack_installs`."""

from datetime import datetime
from typing import Final

from fastapi import APIRouter

from attune.api.access import PACKS, permitted, readable, readable_page
from attune.api.answers import Answer, Success
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key, changed, given
from attune.api.notices import Notices
from attune.api.pack_models import (
    CreatePackRequest,
    PackResponse,
    PackSummary,
    UpdatePackRequest,
)
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.catalog.model import Pack
from attune.catalog.steps.packs import NewPack, PackChanges, create_pack, delete_pack, update_pack
from attune.identities.constraints import Target
from attune.identities.rights import Rights
from attune.kernel.errors import Conflict
from attune.kernel.messages import MessageType
from attune.store.database import Tx

CORE: Final = "core"


def pack_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/packs", "packs")
    _add_looking(routes, parts)
    _add_changing(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("", summary="List packs", responses=refusals())
    async def list_packs(rights: RightsOf, wanted: PageOf) -> Page[PackSummary]:
        found = await database.read(readable_page, PACKS, rights, wanted)
        return page_of(wanted, map(PackSummary.model_validate, found.items), total=found.total)

    @routes.get("/{ref}", summary="Show a pack", responses=refusals(404))
    async def get_pack(ref: Key, rights: RightsOf) -> Answer[PackResponse]:
        return _shown(await database.read(readable, PACKS, rights, ref))


def _add_changing(routes: APIRouter, parts: ApiParts) -> None:
    database, clock, notices = parts.database, parts.clock, parts.notices

    @routes.post("", status_code=201, summary="Make a pack by hand", responses=refusals(403, 409))
    async def create(rights: RightsOf, body: CreatePackRequest) -> Answer[PackResponse]:
        me = rights.caller.identity
        rights.require("packs", "create", Target(ref=body.ref, pack_ref=body.ref, owner=me))
        new = NewPack(**given(body), owner_identity=me)
        return _shown(await database.run(_create, notices, new, clock.now()))

    @routes.put("/{ref}", summary="Change a pack", responses=refusals(403, 404))
    async def update(
        ref: Key, rights: RightsOf, body: UpdatePackRequest | None = None
    ) -> Answer[PackResponse]:
        changes = PackChanges(**changed(body))
        return _shown(await database.run(_update, notices, rights, ref, changes, clock.now()))

    @routes.delete(
        "/{ref}", summary="Delete a pack and all in it", responses=refusals(403, 404, 409)
    )
    async def delete(ref: Key, rights: RightsOf) -> Success:
        gone = await database.run(_delete, notices, rights, ref)
        await parts.flow.arrange()
        return Success(message=f"The pack '{gone.ref}' was deleted.")


async def _create(tx: Tx, notices: Notices, new: NewPack, now: datetime) -> Pack:
    pack = await create_pack(tx, new, now)
    notices.pack(tx, MessageType.PACK_REGISTERED, pack)
    return pack


async def _update(
    tx: Tx, notices: Notices, rights: Rights, ref: str, changes: PackChanges, now: datetime
) -> Pack:
    pack = await permitted(tx, PACKS, rights, ref, "configure", "update")
    updated = await update_pack(tx, pack.id, changes, now)
    if updated is not pack:
        notices.pack(tx, MessageType.PACK_UPDATED, updated)
    return updated


async def _delete(tx: Tx, notices: Notices, rights: Rights, ref: str) -> Pack:
    pack = await permitted(tx, PACKS, rights, ref, "delete")
    if pack.ref == CORE:
        raise Conflict("The core pack cannot be deleted: who may do what rests on it.", ref=CORE)
    notices.pack(tx, MessageType.PACK_DELETED, pack)
    return await delete_pack(tx, pack.id)


def _shown(pack: Pack) -> Answer[PackResponse]:
    return Answer(data=PackResponse.model_validate(pack))
