"""Webhooks of triggers, on and off. Calls to them are received elsewhere."""

from datetime import datetime

import msgspec
from fastapi import APIRouter

from attune.api.access import TRIGGERS, permitted
from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.errors import WrongRequest
from attune.api.fields import Key
from attune.api.parts import ApiParts
from attune.api.trigger_models import EnableWebhookRequest, TriggerResponse, WebhookConfigBody
from attune.catalog.model import Trigger
from attune.catalog.steps.webhooks import (
    WebhookConfig,
    disable_webhook,
    enable_webhook,
    new_key,
    regenerate_webhook_key,
)
from attune.identities.rights import Rights
from attune.store.database import Tx


def webhook_switch_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/triggers/{ref}/webhooks", "webhooks")
    database, clock, ids = parts.database, parts.clock, parts.ids

    @routes.post(
        "/enable", summary="Give a trigger an address to call", responses=refusals(403, 404)
    )
    async def enable(
        ref: Key, rights: RightsOf, body: EnableWebhookRequest | None = None
    ) -> Answer[TriggerResponse]:
        config = config_of(body.webhook_config if body else None)
        fresh = new_key(ids)
        return _shown(await database.run(_enable, rights, ref, fresh, clock.now(), config))

    @routes.post("/disable", summary="Take the address away", responses=refusals(403, 404))
    async def disable(ref: Key, rights: RightsOf) -> Answer[TriggerResponse]:
        return _shown(await database.run(_disable, rights, ref, clock.now()))

    @routes.post(
        "/regenerate", summary="Replace the address by a new one", responses=refusals(400, 403, 404)
    )
    async def regenerate(ref: Key, rights: RightsOf) -> Answer[TriggerResponse]:
        return _shown(await database.run(_regenerate, rights, ref, new_key(ids), clock.now()))

    return routes


def config_of(body: WebhookConfigBody | None) -> WebhookConfig | None:
    """The pydantic model has checked it; this is the same value in the words of the catalog."""
    if body is None:
        return None
    return msgspec.convert(body.model_dump(exclude_none=True), WebhookConfig)


async def _enable(
    tx: Tx, rights: Rights, ref: str, key: str, now: datetime, config: WebhookConfig | None
) -> Trigger:
    trigger = await permitted(tx, TRIGGERS, rights, ref, "update")
    return await enable_webhook(tx, trigger.id, key, now, config)


async def _disable(tx: Tx, rights: Rights, ref: str, now: datetime) -> Trigger:
    trigger = await permitted(tx, TRIGGERS, rights, ref, "update")
    return await disable_webhook(tx, trigger.id, now)


async def _regenerate(tx: Tx, rights: Rights, ref: str, key: str, now: datetime) -> Trigger:
    trigger = await permitted(tx, TRIGGERS, rights, ref, "update")
    if not trigger.webhook_enabled:
        raise WrongRequest(f"Webhooks of '{trigger.ref}' are not enabled.", field="webhook_enabled")
    return await regenerate_webhook_key(tx, trigger.id, key, now)


def _shown(trigger: Trigger) -> Answer[TriggerResponse]:
    return Answer(data=TriggerResponse.of(trigger))
