"""/policies: how many executions may run, and when.

Whoever may look at queues sees them, because they explain why something waits. They bind everybody, so only
administrators write them. A change counts for what waits already before it is answered.
"""

from typing import Final

from fastapi import APIRouter

from attune.api.access import ACTIONS, PACKS, Resource, readable, readable_page
from attune.api.administrators import require_administrator
from attune.api.answers import Answer, Success
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.api.policy_models import (
    CreatePolicyRequest,
    PolicyResponse,
    UpdatePolicyRequest,
    changed_values,
    new_values,
    policy_response,
)
from attune.catalog import rows
from attune.catalog.model import Policy
from attune.catalog.steps.policies import (
    NewPolicy,
    PolicyChanges,
    create_policy,
    delete_policy,
    shadows,
    update_policy,
)
from attune.identities.rights import Rights
from attune.identities.row_conditions import Columns, Condition
from attune.store.database import Tx

_COLUMNS: Final = Columns(ref="ref", pack_ref="pack_ref")

POLICIES: Final[Resource[Policy]] = Resource(
    "queues",
    rows.POLICIES,
    _COLUMNS,
    lambda rights: rights.condition("queues", "read", _COLUMNS),
)


def policy_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1", "policies")
    _add_looking(routes, parts)
    _add_changing(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    async def page(rights: Rights, wanted: PageOf, *conditions: Condition) -> Page[PolicyResponse]:
        found, shadowed = await database.read(_page, rights, wanted, *conditions)
        shown = [policy_response(each, shadowed.get(each.id)) for each in found.items]
        return page_of(wanted, shown, total=found.total)

    @routes.get("/policies", summary="List policies", responses=refusals())
    async def list_policies(rights: RightsOf, wanted: PageOf) -> Page[PolicyResponse]:
        return await page(rights, wanted)

    @routes.get("/packs/{ref}/policies", summary="List a pack's policies", responses=refusals(404))
    async def list_of_pack(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[PolicyResponse]:
        pack = await database.read(readable, PACKS, rights, ref)
        return await page(rights, wanted, Condition("pack = :of", {"of": pack.id}))

    @routes.get(
        "/actions/{ref}/policies", summary="List an action's policies", responses=refusals(404)
    )
    async def list_of_action(ref: Key, rights: RightsOf, wanted: PageOf) -> Page[PolicyResponse]:
        action = await database.read(readable, ACTIONS, rights, ref)
        about_it = Condition("(scope_type = 'action' AND scope_ref = :of)", {"of": action.ref})
        return await page(rights, wanted, about_it)

    @routes.get("/policies/{ref}", summary="Show a policy", responses=refusals(404))
    async def get_policy(ref: Key, rights: RightsOf) -> Answer[PolicyResponse]:
        policy = await database.read(readable, POLICIES, rights, ref)
        return await _shown(parts, policy)


def _add_changing(routes: APIRouter, parts: ApiParts) -> None:
    database, clock = parts.database, parts.clock

    @routes.post(
        "/policies",
        status_code=201,
        summary="Make a policy by hand",
        responses=refusals(403, 404, 409),
    )
    async def create(rights: RightsOf, body: CreatePolicyRequest) -> Answer[PolicyResponse]:
        require_administrator(rights, "Policies are written")
        new = NewPolicy(**new_values(body))
        made = await database.run(create_policy, new, clock.now())
        await parts.flow.arrange()
        return await _shown(parts, made)

    @routes.put("/policies/{ref}", summary="Change a policy", responses=refusals(403, 404))
    async def update(
        ref: Key, rights: RightsOf, body: UpdatePolicyRequest | None = None
    ) -> Answer[PolicyResponse]:
        require_administrator(rights, "Policies are written")
        changes = PolicyChanges(**changed_values(body))
        policy = await database.run(update_policy, ref, changes, clock.now())
        await parts.flow.arrange()
        return await _shown(parts, policy)

    @routes.delete("/policies/{ref}", summary="Delete a policy", responses=refusals(403, 404))
    async def delete(ref: Key, rights: RightsOf) -> Success:
        require_administrator(rights, "Policies are written")
        gone = await database.run(delete_policy, ref)
        await parts.flow.arrange()
        return Success(message=f"The policy '{gone.ref}' was deleted.")


async def _page(
    tx: Tx, rights: Rights, wanted: PageOf, *conditions: Condition
) -> tuple[rows.Page[Policy], dict[int, str]]:
    """With those that go before some of them, told in the same look."""
    found = await readable_page(tx, POLICIES, rights, wanted, *conditions)
    return found, await shadows(tx, [each.id for each in found.items])


async def _shown(parts: ApiParts, policy: Policy) -> Answer[PolicyResponse]:
    shadowed = await parts.database.read(shadows, [policy.id])
    return Answer(data=policy_response(policy, shadowed.get(policy.id)))
