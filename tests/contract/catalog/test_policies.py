"""Policies: loaded with their pack, made by hand, changed."""

from typing import Any

import pytest

from attune.catalog.model import Policy
from attune.catalog.rows import PACKS, POLICIES
from attune.catalog.steps.packs import delete_pack
from attune.catalog.steps.policies import (
    NewPolicy,
    PolicyChanges,
    create_policy,
    delete_policy,
    update_policy,
)
from attune.kernel.errors import Conflict, DuplicateRow, InvalidInput, NotFound
from attune.store.database import Database
from tests.contract.catalog.world import LATER, NOW, get, load, load_core, refs
from tests.unit.catalog.packs import HEAD, SHOP

LIMIT = "ref: slowly\naction_ref: ship\nconcurrency: {limit: 2}\n"
LIMITED = {**SHOP, "policies/slowly.yaml": LIMIT}


def new(**fields: Any) -> NewPolicy:
    """A limit of one for shop.ship, unless the fields say otherwise."""
    defaults = {"ref": "shop.mine", "scope_type": "action", "scope_ref": "shop.ship"}
    return NewPolicy(**{**defaults, "concurrency_limit": 1, **fields})


async def create(database: Database, **fields: Any) -> Policy:
    return await database.run(create_policy, new(**fields), NOW)


@pytest.fixture(autouse=True)
async def _core(database: Database) -> None:
    await load_core(database)


class TestLoading:
    async def test_a_policy_is_loaded_with_its_pack(self, database: Database) -> None:
        summary = await load(database, LIMITED)
        assert (summary.policies.created, summary.warnings) == (("shop.slowly",), ())
        policy = await get(database, POLICIES, "shop.slowly")
        pack = await get(database, PACKS, "shop")
        assert (policy.pack, policy.pack_ref, policy.is_adhoc) == (pack.id, "shop", False)
        assert (policy.scope_type, policy.scope_ref) == ("action", "shop.ship")
        assert (policy.concurrency_limit, policy.concurrency_method) == (2, "enqueue")
        assert (policy.rate_limit, policy.quotas, policy.concurrency_parameters) == (None, [], [])
        assert not (await load(database, LIMITED, LATER)).changed

    async def test_an_update_keeps_the_id_and_removes_what_is_gone(
        self, database: Database
    ) -> None:
        await load(database, {**LIMITED, "policies/old.yaml": LIMIT.replace("slowly", "old")})
        before = await get(database, POLICIES, "shop.slowly")
        summary = await load(
            database, {**SHOP, "policies/slowly.yaml": LIMIT.replace("2", "5")}, LATER
        )
        assert summary.changed
        assert summary.policies.updated == ("shop.slowly",)
        assert summary.policies.removed == ("shop.old",)
        after = await get(database, POLICIES, "shop.slowly")
        assert (after.id, after.concurrency_limit, after.updated) == (before.id, 5, LATER)
        assert await refs(database, POLICIES) == ["shop.slowly"]

    async def test_an_action_and_its_policy_may_go_in_one_update(self, database: Database) -> None:
        await load(database, LIMITED)
        summary = await load(database, {"pack.yaml": HEAD}, LATER)
        assert summary.policies.removed == ("shop.slowly",)
        assert summary.actions.removed == ("shop.ship",)

    async def test_one_that_has_no_effect_any_more_is_removed_with_a_warning(
        self, database: Database
    ) -> None:
        await load(database, LIMITED)
        cancel = LIMIT.replace("2}", "2, method: cancel}")
        summary = await load(database, {**SHOP, "policies/slowly.yaml": cancel}, LATER)
        assert summary.policies.removed == ("shop.slowly",)
        assert summary.warnings == (
            (
                "policies/slowly.yaml: concurrency.method: 'cancel' is not supported yet, only 'enqueue';"
                " the policy is not loaded"
            ),
        )

    async def test_a_policy_over_an_action_that_is_not_there_refuses_the_pack(
        self, database: Database
    ) -> None:
        with pytest.raises(InvalidInput) as refusal:
            await load(database, {**LIMITED, "policies/slowly.yaml": LIMIT.replace("ship", "shp")})
        assert refusal.value.fields["faults"] == [
            "policies/slowly.yaml: action_ref: unknown action 'shop.shp'; did you mean 'shop.ship'?"
        ]
        assert await refs(database, POLICIES) == []

    async def test_what_users_made_and_switched_is_kept(self, database: Database) -> None:
        await load(database, LIMITED)
        await create(database)
        off = PolicyChanges(enabled=False)
        await database.run(update_policy, "shop.slowly", off, NOW)
        await load(database, {**SHOP, "policies/slowly.yaml": LIMIT.replace("2", "3")}, LATER)
        policy = await get(database, POLICIES, "shop.slowly")
        assert (policy.enabled, policy.concurrency_limit) == (False, 3)
        assert await refs(database, POLICIES) == ["shop.mine", "shop.slowly"]
        mine = {**SHOP, "policies/mine.yaml": LIMIT.replace("slowly", "mine")}
        with pytest.raises(Conflict, match="The policy 'shop.mine' was made by hand"):
            await load(database, mine, LATER)

    async def test_it_goes_with_its_pack(self, database: Database) -> None:
        await load(database, LIMITED)
        await create(database, ref="core.other", scope_ref="core.echo")
        await database.run(delete_pack, "shop")
        assert await refs(database, POLICIES) == ["core.other"]


class TestByHand:
    async def test_one_is_made_changed_and_deleted(self, database: Database) -> None:
        await load(database)
        made = await create(database, concurrency_limit=0, tags=["a"], priority=-5)
        assert (made.name, made.pack_ref, made.is_adhoc) == ("Mine", "shop", True)
        assert await get(database, POLICIES, "shop.mine") == made
        changes = PolicyChanges(concurrency_limit=7, scope_ref="core.echo", name="Other")
        changed = await database.run(update_policy, made.id, changes, LATER)
        assert (changed.concurrency_limit, changed.scope_ref) == (7, "core.echo")
        assert (changed.name, changed.tags, changed.updated) == ("Other", ["a"], LATER)
        assert await get(database, POLICIES, "shop.mine") == changed
        await database.run(delete_policy, "shop.mine")
        with pytest.raises(NotFound, match="There is no policy 'shop.mine'"):
            await database.run(delete_policy, "shop.mine")

    async def test_one_may_belong_to_no_pack(self, database: Database) -> None:
        made = await create(database, ref="site.echo", scope_ref="core.echo")
        assert (made.pack, made.pack_ref, made.scope_ref) == (None, None, "core.echo")

    async def test_what_it_names_must_be_there(self, database: Database) -> None:
        await load(database)
        with pytest.raises(NotFound, match="There is no action 'shop.nothing'"):
            await create(database, scope_ref="shop.nothing")
        with pytest.raises(NotFound, match="There is no pack 'lab'"):
            await create(database, ref="lab.x", pack_ref="lab")
        await create(database)
        with pytest.raises(DuplicateRow, match="There is a policy 'shop.mine' already"):
            await create(database)

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"concurrency_limit": -1}, "concurrency.limit"),
            ({"concurrency_limit": 2**31}, "concurrency.limit"),
            ({"concurrency_limit": None}, "concurrency.limit"),
            ({"concurrency_method": "cancel"}, "concurrency.method"),
            ({"concurrency_method": "drop"}, "concurrency.method"),
            ({"concurrency_parameters": ["host"]}, "concurrency.parameters"),
            ({"scope_type": "pack", "scope_ref": "shop"}, "scope.type"),
            ({"scope_type": "global", "scope_ref": None}, "scope.type"),
            ({"scope_type": "sky"}, "scope.type"),
            ({"scope_ref": None}, "scope.action_ref"),
            ({"priority": 2**31}, "priority"),
            ({"name": " "}, "name"),
            ({"rate_limit": {"max_executions": 1}}, "rate_limit"),
            ({"quotas": [{"limit": 1}]}, "quotas"),
            ({"windows": [{}]}, "windows"),
            ({"blackouts": [{}]}, "blackouts"),
        ],
    )
    async def test_each_refusal_names_its_field(
        self, database: Database, wrong: dict[str, Any], field: str
    ) -> None:
        await load(database)
        with pytest.raises(InvalidInput) as refusal:
            await create(database, **wrong)
        assert list(refusal.value.fields["problems"]) == [field]  # type: ignore[call-overload]
        made = await create(database)
        if wrong != {"concurrency_limit": None}:
            with pytest.raises(InvalidInput):
                await database.run(update_policy, made.id, PolicyChanges(**wrong), LATER)
            assert await get(database, POLICIES, made.id) == made
