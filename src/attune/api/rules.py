"""/rules: looked up, made by hand, changed. The lists by pack, action and trigger are in `rule_lists`."""

from datetime import datetime
from typing import Any, Final

from fastapi import APIRouter

from attune.api.access import ACTIONS, PACKS, RULES, TRIGGERS, permitted, readable
from attune.api.answers import Answer, Success
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key, changed, given
from attune.api.notices import Notices
from attune.api.parts import ApiParts
from attune.api.rule_models import CreateRuleRequest, RuleResponse, UpdateRuleRequest
from attune.catalog.model import Rule
from attune.catalog.steps.rules import NewRule, RuleChanges, create_rule, delete_rule, update_rule
from attune.catalog.steps.switches import switch_rule
from attune.identities.constraints import Target
from attune.identities.rights import Rights
from attune.kernel.messages import MessageType
from attune.store.database import Tx

_GIFT: Final = "permission_set_refs"
_HARMLESS: Final = frozenset({"label", "description", "enabled"})


def rule_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/rules", "rules")
    _add_making(routes, parts)
    _add_changing(routes, parts)
    _add_switches(routes, parts)
    return routes


def _add_making(routes: APIRouter, parts: ApiParts) -> None:
    database, clock, notices = parts.database, parts.clock, parts.notices

    @routes.post(
        "", status_code=201, summary="Make a rule by hand", responses=refusals(403, 404, 409)
    )
    async def create(rights: RightsOf, body: CreateRuleRequest) -> Answer[RuleResponse]:
        me = rights.caller.identity
        target = Target(ref=body.ref, pack_ref=body.pack_ref, owner=me)
        rights.require("rules", "create", target)
        await parts.grants.check_gift(rights, body.permission_set_refs, _GIFT)
        new = NewRule(**given(body), owner_identity=me)
        return _shown(await database.run(_create, notices, rights, new, clock.now()))

    @routes.get("/{ref}", summary="Show a rule", responses=refusals(404))
    async def get_rule(ref: Key, rights: RightsOf) -> Answer[RuleResponse]:
        return _shown(await database.read(readable, RULES, rights, ref))


def _add_changing(routes: APIRouter, parts: ApiParts) -> None:
    database, clock, notices = parts.database, parts.clock, parts.notices

    @routes.put("/{ref}", summary="Change a rule", responses=refusals(403, 404))
    async def update(
        ref: Key, rights: RightsOf, body: UpdateRuleRequest | None = None
    ) -> Answer[RuleResponse]:
        changes = changed(body)
        before = await database.read(permitted, RULES, rights, ref, "update")
        if not _HARMLESS.issuperset(changes):
            gift = changes.get(_GIFT, before.permission_set_refs)
            await parts.grants.check_gift(rights, gift, _GIFT)
        return _shown(await database.run(_update, notices, rights, before, changes, clock.now()))

    @routes.delete("/{ref}", summary="Delete a rule", responses=refusals(403, 404))
    async def delete(ref: Key, rights: RightsOf) -> Success:
        gone = await database.run(_delete, notices, rights, ref)
        return Success(message=f"The rule '{gone.ref}' was deleted.")


def _add_switches(routes: APIRouter, parts: ApiParts) -> None:
    database, clock, notices = parts.database, parts.clock, parts.notices

    @routes.post("/{ref}/enable", summary="Enable it", responses=refusals(403, 404))
    async def enable(ref: Key, rights: RightsOf) -> Answer[RuleResponse]:
        now = clock.now()
        return _shown(await database.run(_switch, notices, rights, ref, now, enabled=True))

    @routes.post("/{ref}/disable", summary="Disable it", responses=refusals(403, 404))
    async def disable(ref: Key, rights: RightsOf) -> Answer[RuleResponse]:
        now = clock.now()
        return _shown(await database.run(_switch, notices, rights, ref, now, enabled=False))


async def _create(tx: Tx, notices: Notices, rights: Rights, new: NewRule, now: datetime) -> Rule:
    """What the caller may not see is unknown to him here, too."""
    await readable(tx, PACKS, rights, new.pack_ref)
    await readable(tx, TRIGGERS, rights, new.trigger_ref)
    await readable(tx, ACTIONS, rights, new.action_ref)
    rule = await create_rule(tx, new, now)
    notices.rule(tx, MessageType.RULE_CREATED, rule)
    return rule


async def _update(
    tx: Tx, notices: Notices, rights: Rights, before: Rule, changes: dict[str, Any], now: datetime
) -> Rule:
    if "trigger_ref" in changes:
        await readable(tx, TRIGGERS, rights, changes["trigger_ref"])
    if "action_ref" in changes:
        await readable(tx, ACTIONS, rights, changes["action_ref"])
    updated = await update_rule(tx, before.id, RuleChanges(**changes), now)
    notices.rule(tx, MessageType.RULE_UPDATED, updated)
    return updated


async def _delete(tx: Tx, notices: Notices, rights: Rights, ref: str) -> Rule:
    rule = await permitted(tx, RULES, rights, ref, "delete")
    notices.rule(tx, MessageType.RULE_DELETED, rule)
    return await delete_rule(tx, rule.id)


async def _switch(
    tx: Tx, notices: Notices, rights: Rights, ref: str, now: datetime, *, enabled: bool
) -> Rule:
    rule = await permitted(tx, RULES, rights, ref, "update")
    switched = await switch_rule(tx, rule.id, now, enabled=enabled)
    kind = MessageType.RULE_ENABLED if enabled else MessageType.RULE_DISABLED
    notices.rule(tx, kind, switched)
    return switched


def _shown(rule: Rule) -> Answer[RuleResponse]:
    return Answer(data=RuleResponse.model_validate(rule))
