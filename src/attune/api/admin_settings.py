"""/admin/settings: what administrators change while everything runs."""

from datetime import datetime

from fastapi import APIRouter

from attune.api.admin_models import SettingsAnswer, SettingsResponse, UpdateSettingsRequest
from attune.api.administrators import require_administrator
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.parts import ApiParts
from attune.catalog.runtime_settings import (
    SettingsInForce,
    change_settings,
    in_force,
    load_settings,
)
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.queues.overview import capacity
from attune.store.database import Tx


def settings_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/admin", "admin")
    database, clock = parts.database, parts.clock

    async def shown() -> SettingsResponse:
        return await database.read(_shown, parts, clock.now())

    @routes.get("/settings", summary="Show the runtime settings", responses=refusals(403))
    async def get_settings(rights: RightsOf) -> SettingsAnswer:
        require_administrator(rights, "Settings are seen")
        return SettingsAnswer(data=await shown())

    @routes.put("/settings", summary="Change runtime settings", responses=refusals(403))
    async def put_settings(
        rights: RightsOf, body: UpdateSettingsRequest | None = None
    ) -> SettingsAnswer:
        require_administrator(rights, "Settings are changed")
        asked = body or UpdateSettingsRequest()
        await database.run(change_settings, asked.changes, rights.caller.identity, clock.now())
        if (
            asked.changes
        ):  # executors hear of it themselves, and hand over what a raised cap has room for
            await parts.flow.promote()
        return SettingsAnswer(data=await shown(), message=_ignored(asked.unknown))

    return routes


def _ignored(names: list[str]) -> str | None:
    """Fields that this version does not know change nothing; a name that was mistyped must show all the same."""
    if not names:
        return None
    return f"Ignored, because there are no such settings: {', '.join(names)}."[:1000]


async def _shown(tx: Tx, parts: ApiParts, now: datetime) -> SettingsResponse:
    chosen = await load_settings(tx)
    most = await capacity(tx, parts.flow.terms.stale, now)
    return SettingsResponse.of(chosen, in_force(chosen, _defaults(parts.flow.terms.queue, most)))


def _defaults(configured: QueueTerms, most: int) -> SettingsInForce:
    return SettingsInForce(
        max_concurrent_executions=most,
        max_queue_length=configured.max_queue_length,
        queue_timeout_seconds=configured.timeout_seconds,
        ageing_seconds=None,
    )
