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
    shadows,
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

    async def test_every_gate_of_a_file_is_kept(self, database: Database) -> None:
        gates = (
            "ref: slowly\npack_ref: shop\n"
            "concurrency: {limit: 3, method: cancel, parameters: [host]}\n"
            "rate_limit: {max_executions: 5, window_seconds: 60}\n"
            "quotas: [{quota_type: executions_total, limit: 9, per: identity}]\n"
            "windows: [{start: '08:00', end: '17:00', days: [mon], timezone: Europe/Berlin}]\n"
            "blackouts: [{from: 2026-12-24, to: 2026-12-26}]\n"
        )
        files = {**SHOP, "policies/slowly.yaml": gates}
        await load(database, files)
        policy = await get(database, POLICIES, "shop.slowly")
        assert (policy.scope_type, policy.scope_ref) == ("pack", "shop")
        assert (policy.concurrency_limit, policy.concurrency_method) == (3, "cancel")
        assert policy.concurrency_parameters == ["host"]
        assert policy.rate_limit == {"max_executions": 5, "window_seconds": 60}
        assert policy.quotas == [{"quota_type": "executions_total", "limit": 9, "per": "identity"}]
        assert policy.windows == [
            {"days": ["mon"], "start": "08:00", "end": "17:00", "timezone": "Europe/Berlin"}
        ]
        assert policy.blackouts == [{"from": "2026-12-24", "to": "2026-12-26"}]
        assert not (await load(database, files, LATER)).changed

    async def test_a_limit_becomes_automatic_and_fixed_again(self, database: Database) -> None:
        for concurrency, expected in (
            ("{limit: auto, ceiling: 8}", (None, 1, 8)),
            ("{limit: 4}", (4, None, None)),
        ):
            text = LIMIT.replace("{limit: 2}", concurrency)
            await load(database, {**SHOP, "policies/slowly.yaml": text}, LATER)
            policy = await get(database, POLICIES, "shop.slowly")
            bounds = (policy.concurrency_floor, policy.concurrency_ceiling)
            assert (policy.concurrency_limit, *bounds) == expected

    async def test_a_policy_over_everything_has_no_ref(self, database: Database) -> None:
        text = LIMIT.replace("action_ref: ship", "scope: {type: global}")
        await load(database, {**SHOP, "policies/slowly.yaml": text})
        policy = await get(database, POLICIES, "shop.slowly")
        assert (policy.scope_type, policy.scope_ref) == ("global", None)

    async def test_a_policy_that_another_goes_before_is_told_to_its_author(
        self, database: Database
    ) -> None:
        second = LIMIT.replace("slowly", "faster") + "priority: 1\n"
        files = {**LIMITED, "policies/faster.yaml": second}
        summary = await load(database, files)
        told = "policies/slowly.yaml: has no effect: 'shop.faster', also over shop.ship, goes before it"
        assert summary.warnings == (told,)
        await database.run(update_policy, "shop.faster", PolicyChanges(enabled=False), NOW)
        assert (await load(database, files, LATER)).warnings == ()

    async def test_a_policy_over_a_pack_that_is_not_there_refuses_the_pack(
        self, database: Database
    ) -> None:
        text = LIMIT.replace("action_ref: ship", "pack_ref: shp")
        with pytest.raises(InvalidInput) as refusal:
            await load(database, {**SHOP, "policies/slowly.yaml": text})
        assert refusal.value.fields["faults"] == [
            "policies/slowly.yaml: pack_ref: unknown pack 'shp'; did you mean 'shop'?"
        ]

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

    async def test_every_gate_may_stand_alone(self, database: Database) -> None:
        window = {"start": "08:00", "end": "17:00"}
        gates: list[dict[str, Any]] = [
            {"concurrency_limit": 0},
            {"concurrency_limit": "auto"},
            {"rate_limit": {"max_executions": 1, "window_seconds": 0.5}},
            {"quotas": [{"quota_type": "running_executions", "limit": 0}]},
            {"windows": [window]},
            {"blackouts": [{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:01Z"}]},
        ]
        for number, gate in enumerate(gates):
            alone = {"ref": f"site.p{number}", "scope_ref": "core.echo", "concurrency_limit": None}
            made = await create(database, **{**alone, **gate})
            assert await get(database, POLICIES, made.id) == made

    async def test_what_is_not_written_of_a_window_is_filled_in(self, database: Database) -> None:
        window = {"start": "08:00", "end": "17:00", "timezone": None}
        made = await create(database, ref="site.x", scope_ref="core.echo", windows=[window])
        days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        expected = {"days": days, "start": "08:00", "end": "17:00", "timezone": "UTC"}
        assert made.windows == [expected]
        changes = PolicyChanges(windows=[{**window, "days": ["sat"]}])
        changed = await database.run(update_policy, made.id, changes, LATER)
        assert changed.windows == [{**expected, "days": ["sat"]}]

    async def test_an_automatic_limit_keeps_the_bounds_that_a_change_does_not_name(
        self, database: Database
    ) -> None:
        await create(
            database,
            ref="site.x",
            scope_ref="core.echo",
            concurrency_limit="auto",
            concurrency_floor=5,
        )
        for changes, expected in (
            (PolicyChanges(priority=1), (None, 5, 100)),
            (PolicyChanges(concurrency_ceiling=20), (None, 5, 20)),
            (PolicyChanges(concurrency_limit="auto", concurrency_floor=6), (None, 6, 20)),
            (PolicyChanges(concurrency_limit=3), (3, None, None)),
            (PolicyChanges(concurrency_limit="auto"), (None, 1, 100)),
        ):
            made = await database.run(update_policy, "site.x", changes, LATER)
            bounds = (made.concurrency_floor, made.concurrency_ceiling)
            assert (made.concurrency_limit, *bounds) == expected, changes
            assert await get(database, POLICIES, "site.x") == made

    async def test_the_scope_may_become_wider(self, database: Database) -> None:
        await load(database)
        made = await create(database)
        for scope, expected in (
            ({"scope_type": "pack", "scope_ref": "shop"}, ("pack", "shop")),
            ({"scope_type": "global", "scope_ref": None}, ("global", None)),
            ({"scope_type": "action", "scope_ref": "core.echo"}, ("action", "core.echo")),
        ):
            changed = await database.run(update_policy, made.id, PolicyChanges(**scope), LATER)
            assert (changed.scope_type, changed.scope_ref) == expected

    async def test_the_last_gate_cannot_be_taken_away(self, database: Database) -> None:
        made = await create(database, ref="site.x", scope_ref="core.echo")
        changes = PolicyChanges(concurrency_limit=None)
        with pytest.raises(InvalidInput, match="a policy needs at least one of concurrency"):
            await database.run(update_policy, made.id, changes, LATER)

    async def test_what_it_names_must_be_there(self, database: Database) -> None:
        await load(database)
        with pytest.raises(NotFound, match="There is no action 'shop.nothing'"):
            await create(database, scope_ref="shop.nothing")
        with pytest.raises(NotFound, match="There is no pack 'shp'"):
            await create(database, scope_type="pack", scope_ref="shp")
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
            ({"concurrency_limit": None}, "concurrency"),
            ({"concurrency_floor": 1}, "concurrency.floor"),
            ({"concurrency_method": "drop"}, "concurrency.method"),
            ({"concurrency_parameters": ["host", "host"]}, "concurrency.parameters"),
            ({"scope_type": "pack", "scope_ref": None}, "scope.pack_ref"),
            ({"scope_type": "sky"}, "scope.type"),
            ({"scope_ref": None}, "scope.action_ref"),
            ({"priority": 2**31}, "priority"),
            ({"name": " "}, "name"),
            ({"rate_limit": {"max_executions": 1}}, "rate_limit.window_seconds"),
            ({"quotas": [{"quota_type": "executions_total"}]}, "quotas.0.limit"),
            ({"windows": [{"start": "08:00"}]}, "windows.0.end"),
            ({"blackouts": [{"from": "2026-01-02", "to": "2026-01-01"}]}, "blackouts.0.to"),
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
        with pytest.raises(InvalidInput):
            await database.run(update_policy, made.id, PolicyChanges(**wrong), LATER)
        assert await get(database, POLICIES, made.id) == made


class TestWhichIsInEffect:
    async def test_the_higher_priority_goes_first_then_the_older(self, database: Database) -> None:
        await load(database)
        made = [
            await create(database, ref=f"shop.{name}", priority=priority)
            for name, priority in (("low", 0), ("high", 5), ("twin", 5))
        ]
        low, high, twin = (each.id for each in made)
        assert await shadowed(database) == {low: "shop.high", twin: "shop.high"}
        await database.run(update_policy, high, PolicyChanges(enabled=False), LATER)
        assert await shadowed(database) == {low: "shop.twin"}

    async def test_one_over_a_wider_or_another_scope_shadows_nothing(
        self, database: Database
    ) -> None:
        await load(database)
        everything = {"scope_type": "global", "scope_ref": None}
        await create(database)
        await create(database, ref="shop.b", scope_type="pack", scope_ref="shop", priority=9)
        await create(database, ref="shop.c", priority=9, **everything)
        await create(database, ref="shop.d", scope_ref="core.echo", priority=9)
        assert await shadowed(database) == {}
        last = await create(database, ref="shop.e", **everything)
        assert await shadowed(database) == {last.id: "shop.c"}


async def shadowed(database: Database) -> dict[int, str]:
    ids = [(await get(database, POLICIES, ref)).id for ref in await refs(database, POLICIES)]
    return await database.read(shadows, ids)
