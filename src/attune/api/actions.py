"""/actions: looked up, made by hand, changed. Searching them is in `action_search`."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query

from attune.api.access import ACTIONS, PACKS, permitted, readable, readable_page
from attune.api.action_models import (
    ActionResponse,
    ActionSummary,
    CreateActionRequest,
    UpdateActionRequest,
    action_changes,
)
from attune.api.answers import Answer, Success
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key, given
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.catalog.model import Action
from attune.catalog.steps.actions import (
    ActionChanges,
    NewAction,
    create_action,
    delete_action,
    update_action,
)
from attune.identities.constraints import Target
from attune.identities.rights import Rights
from attune.identities.row_conditions import Condition
from attune.store.database import Tx

_GIFT: Final = "default_execution_permission_set_refs"
_HARMLESS: Final = frozenset({"label", "description", "enabled", "tags"})

Executable = Annotated[
    bool, Query(description="Only those that the caller may execute, with what he holds now.")
]


def action_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1", "actions")
    _add_looking(routes, parts)
    _add_changing(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("/actions", summary="List actions", responses=refusals())
    async def list_actions(
        rights: RightsOf,
        wanted: PageOf,
        executable_with_current_access: Executable = False,
    ) -> Page[ActionSummary]:
        only = [ACTIONS.allowed(rights, "execute")] if executable_with_current_access else []
        found = await database.read(readable_page, ACTIONS, rights, wanted, *only)
        return page_of(wanted, map(ActionSummary.model_validate, found.items), total=found.total)

    @routes.get("/packs/{ref}/actions", summary="List a pack's actions", responses=refusals(404))
    async def list_of_pack(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[ActionSummary]:
        pack = await database.read(readable, PACKS, rights, ref)
        of_pack = Condition("pack = :of_pack", {"of_pack": pack.id})
        found = await database.read(readable_page, ACTIONS, rights, wanted, of_pack)
        return page_of(wanted, map(ActionSummary.model_validate, found.items), total=found.total)

    @routes.get("/actions/{ref}", summary="Show an action", responses=refusals(404))
    async def get_action(ref: Key, rights: RightsOf) -> Answer[ActionResponse]:
        return _shown(await database.read(readable, ACTIONS, rights, ref))


def _add_changing(routes: APIRouter, parts: ApiParts) -> None:
    database, clock, grants = parts.database, parts.clock, parts.grants

    @routes.post(
        "/actions",
        status_code=201,
        summary="Make an action by hand",
        responses=refusals(403, 404, 409),
    )
    async def create(rights: RightsOf, body: CreateActionRequest) -> Answer[ActionResponse]:
        rights.require("actions", "create", Target(ref=body.ref, pack_ref=body.pack_ref))
        new = NewAction(**given(body))
        await grants.check_gift(rights, new.default_execution_permission_set_refs, _GIFT)
        return _shown(await database.run(_create, rights, new, clock.now()))

    @routes.put("/actions/{ref}", summary="Change an action", responses=refusals(403, 404))
    async def update(
        ref: Key, rights: RightsOf, body: UpdateActionRequest | None = None
    ) -> Answer[ActionResponse]:
        changes = action_changes(body)
        before = await database.read(permitted, ACTIONS, rights, ref, "update")
        if not _HARMLESS.issuperset(changes):
            await grants.check_gift(rights, changes.get(_GIFT, getattr(before, _GIFT)), _GIFT)
        now = clock.now()
        return _shown(await database.run(update_action, before.id, ActionChanges(**changes), now))

    @routes.delete("/actions/{ref}", summary="Delete an action", responses=refusals(403, 404))
    async def delete(ref: Key, rights: RightsOf) -> Success:
        gone = await database.run(_delete, rights, ref)
        return Success(message=f"The action '{gone.ref}' was deleted.")


async def _create(tx: Tx, rights: Rights, new: NewAction, now: datetime) -> Action:
    await readable(tx, PACKS, rights, new.pack_ref)
    return await create_action(tx, new, now)


async def _delete(tx: Tx, rights: Rights, ref: str) -> Action:
    action = await permitted(tx, ACTIONS, rights, ref, "delete")
    return await delete_action(tx, action.id)


def _shown(action: Action) -> Answer[ActionResponse]:
    return Answer(data=ActionResponse.model_validate(action))
