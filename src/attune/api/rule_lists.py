"""Lists of rules: all, the enabled ones, and those of a pack, an action or a trigger."""

from fastapi import APIRouter

from attune.api.access import ACTIONS, PACKS, RULES, TRIGGERS, readable, readable_page
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.api.rule_models import RuleSummary
from attune.identities.rights import Rights
from attune.identities.row_conditions import Condition


def rule_list_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1", "rules")
    database = parts.database

    async def page(rights: Rights, wanted: PageOf, *conditions: Condition) -> Page[RuleSummary]:
        found = await database.read(readable_page, RULES, rights, wanted, *conditions)
        return page_of(wanted, map(RuleSummary.model_validate, found.items), total=found.total)

    @routes.get("/rules", summary="List rules", responses=refusals())
    async def list_rules(rights: RightsOf, wanted: PageOf) -> Page[RuleSummary]:
        return await page(rights, wanted)

    @routes.get("/rules/enabled", summary="List enabled rules", responses=refusals())
    async def list_enabled(rights: RightsOf, wanted: PageOf) -> Page[RuleSummary]:
        return await page(rights, wanted, Condition("enabled", {}))

    @routes.get("/packs/{ref}/rules", summary="List a pack's rules", responses=refusals(404))
    async def list_of_pack(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[RuleSummary]:
        pack = await database.read(readable, PACKS, rights, ref)
        return await page(rights, wanted, Condition("pack = :of", {"of": pack.id}))

    @routes.get("/actions/{ref}/rules", summary="List an action's rules", responses=refusals(404))
    async def list_of_action(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[RuleSummary]:
        action = await database.read(readable, ACTIONS, rights, ref)
        return await page(rights, wanted, Condition("action_ref = :of", {"of": action.ref}))

    @routes.get("/triggers/{ref}/rules", summary="List a trigger's rules", responses=refusals(404))
    async def list_of_trigger(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[RuleSummary]:
        trigger = await database.read(readable, TRIGGERS, rights, ref)
        return await page(rights, wanted, Condition("trigger_ref = :of", {"of": trigger.ref}))

    return routes
