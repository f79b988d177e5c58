"""/triggers: looked up, made by hand, changed, switched. Their webhooks are in `webhook_switches`."""

from datetime import datetime

from fastapi import APIRouter

from attune.api.access import PACKS, TRIGGERS, permitted, readable, readable_page
from attune.api.answers import Answer, Success
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key, changed, given
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.api.trigger_models import (
    CreateTriggerRequest,
    TriggerResponse,
    TriggerSummary,
    UpdateTriggerRequest,
)
from attune.api.webhook_switches import config_of
from attune.catalog.model import Trigger
from attune.catalog.steps.switches import switch_trigger
from attune.catalog.steps.triggers import (
    NewTrigger,
    TriggerChanges,
    create_trigger,
    delete_trigger,
    update_trigger,
)
from attune.catalog.steps.webhooks import WebhookConfig, configure_webhook
from attune.identities.constraints import Target
from attune.identities.rights import Rights
from attune.identities.row_conditions import Condition
from attune.store.database import Tx


def trigger_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1", "triggers")
    _add_looking(routes, parts)
    _add_changing(routes, parts)
    _add_switches(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    async def page(rights: Rights, wanted: PageOf, *conditions: Condition) -> Page[TriggerSummary]:
        found = await database.read(readable_page, TRIGGERS, rights, wanted, *conditions)
        return page_of(wanted, map(TriggerSummary.model_validate, found.items), total=found.total)

    @routes.get("/triggers", summary="List triggers", responses=refusals())
    async def list_triggers(rights: RightsOf, wanted: PageOf) -> Page[TriggerSummary]:
        return await page(rights, wanted)

    @routes.get("/triggers/enabled", summary="List enabled triggers", responses=refusals())
    async def list_enabled(rights: RightsOf, wanted: PageOf) -> Page[TriggerSummary]:
        return await page(rights, wanted, Condition("enabled", {}))

    @routes.get("/packs/{ref}/triggers", summary="List a pack's triggers", responses=refusals(404))
    async def list_of_pack(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[TriggerSummary]:
        pack = await database.read(readable, PACKS, rights, ref)
        return await page(rights, wanted, Condition("pack = :of_pack", {"of_pack": pack.id}))

    @routes.get("/triggers/{ref}", summary="Show a trigger", responses=refusals(404))
    async def get_trigger(ref: Key, rights: RightsOf) -> Answer[TriggerResponse]:
        return _shown(await database.read(readable, TRIGGERS, rights, ref))


def _add_changing(routes: APIRouter, parts: ApiParts) -> None:
    database, clock = parts.database, parts.clock

    @routes.post(
        "/triggers",
        status_code=201,
        summary="Make a trigger by hand",
        responses=refusals(403, 404, 409),
    )
    async def create(rights: RightsOf, body: CreateTriggerRequest) -> Answer[TriggerResponse]:
        rights.require("triggers", "create", Target(ref=body.ref, pack_ref=body.pack_ref))
        new = NewTrigger(**given(body))
        return _shown(await database.run(_create, rights, new, clock.now()))

    @routes.put("/triggers/{ref}", summary="Change a trigger", responses=refusals(403, 404))
    async def update(
        ref: Key, rights: RightsOf, body: UpdateTriggerRequest | None = None
    ) -> Answer[TriggerResponse]:
        values = changed(body)
        config = config_of(body.webhook_config if body else None)
        values.pop("webhook_config", None)
        changes = TriggerChanges(**values)
        return _shown(await database.run(_update, rights, ref, changes, config, clock.now()))

    @routes.delete("/triggers/{ref}", summary="Delete a trigger", responses=refusals(403, 404))
    async def delete(ref: Key, rights: RightsOf) -> Success:
        gone = await database.run(_delete, rights, ref)
        return Success(message=f"The trigger '{gone.ref}' was deleted.")


def _add_switches(routes: APIRouter, parts: ApiParts) -> None:
    database, clock = parts.database, parts.clock

    @routes.post("/triggers/{ref}/enable", summary="Enable it", responses=refusals(403, 404))
    async def enable(ref: Key, rights: RightsOf) -> Answer[TriggerResponse]:
        return _shown(await database.run(_switch, rights, ref, clock.now(), enabled=True))

    @routes.post("/triggers/{ref}/disable", summary="Disable it", responses=refusals(403, 404))
    async def disable(ref: Key, rights: RightsOf) -> Answer[TriggerResponse]:
        return _shown(await database.run(_switch, rights, ref, clock.now(), enabled=False))


async def _create(tx: Tx, rights: Rights, new: NewTrigger, now: datetime) -> Trigger:
    if new.pack_ref is not None:
        await readable(tx, PACKS, rights, new.pack_ref)
    return await create_trigger(tx, new, now)


async def _update(
    tx: Tx,
    rights: Rights,
    ref: str,
    changes: TriggerChanges,
    config: WebhookConfig | None,
    now: datetime,
) -> Trigger:
    trigger = await permitted(tx, TRIGGERS, rights, ref, "update")
    updated = await update_trigger(tx, trigger.id, changes, now)
    return updated if config is None else await configure_webhook(tx, trigger.id, config, now)


async def _delete(tx: Tx, rights: Rights, ref: str) -> Trigger:
    trigger = await permitted(tx, TRIGGERS, rights, ref, "delete")
    return await delete_trigger(tx, trigger.id)


async def _switch(tx: Tx, rights: Rights, ref: str, now: datetime, *, enabled: bool) -> Trigger:
    trigger = await permitted(tx, TRIGGERS, rights, ref, "update")
    return await switch_trigger(tx, trigger.id, now, enabled=enabled)


def _shown(trigger: Trigger) -> Answer[TriggerResponse]:
    return Answer(data=TriggerResponse.of(trigger))
