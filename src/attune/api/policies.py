"""/policies: how many executions of an action may run at once.

Whoever may look at queues sees them, because they explain why something waits. They bind everybody, so only
administrators write them.
"""

from typing import Final

from fastapi import APIRouter

from attune.api.access import ACTIONS, PACKS, Resource, readable, readable_page
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
    update_policy,
)
from attune.identities.model import ADMINISTRATOR
from attune.identities.rights import Rights
from attune.identities.row_conditions import Columns, Condition
from attune.kernel.errors import Forbidden

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
        found = await database.read(readable_page, POLICIES, rights, wanted, *conditions)
        return page_of(wanted, map(policy_response, found.items), total=found.total)

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
        return _shown(await database.read(readable, POLICIES, rights, ref))


def _add_changing(routes: APIRouter, parts: ApiParts) -> None:
    database, clock = parts.database, parts.clock

    @routes.post(
        "/policies",
        status_code=201,
        summary="Make a policy by hand",
        responses=refusals(403, 404, 409),
    )
    async def create(rights: RightsOf, body: CreatePolicyRequest) -> Answer[PolicyResponse]:
        _require_administrator(rights)
        new = NewPolicy(**new_values(body))
        return _shown(await database.run(create_policy, new, clock.now()))

    @routes.put("/policies/{ref}", summary="Change a policy", responses=refusals(403, 404))
    async def update(
        ref: Key, rights: RightsOf, body: UpdatePolicyRequest | None = None
    ) -> Answer[PolicyResponse]:
        _require_administrator(rights)
        changes = PolicyChanges(**changed_values(body))
        return _shown(await database.run(update_policy, ref, changes, clock.now()))

    @routes.delete("/policies/{ref}", summary="Delete a policy", responses=refusals(403, 404))
    async def delete(ref: Key, rights: RightsOf) -> Success:
        _require_administrator(rights)
        gone = await database.run(delete_policy, ref)
        return Success(message=f"The policy '{gone.ref}' was deleted.")


def _require_administrator(rights: Rights) -> None:
    if not rights.is_everything:
        raise Forbidden(
            f"Policies are written by administrators: this needs the permission set {ADMINISTRATOR},"
            " which you do not have.",
            permission=ADMINISTRATOR,
        )


def _shown(policy: Policy) -> Answer[PolicyResponse]:
    return Answer(data=policy_response(policy))
