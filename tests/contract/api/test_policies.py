"""/policies as clients see it."""

from typing import Any

import pytest

from attune.simulation.clock import ManualClock
from tests.contract.api.asgi import Client, Reply
from tests.contract.api.world import World
from tests.unit.catalog.packs import SHOP, archive

KEYS = {
    "blackouts", "concurrency", "created", "description", "enabled", "id", "is_adhoc", "name", "pack",
    "pack_ref", "priority", "quotas", "rate_limit", "ref", "scope", "tags", "updated", "windows",
}  # fmt: skip
NEW: dict[str, Any] = {
    "ref": "core.echo_limit",
    "name": "Echo slowly",
    "scope": {"type": "action", "action_ref": "core.echo"},
    "concurrency": {"limit": 2},
}
POLICIES = "/api/v1/policies"
LIMIT = f"{POLICIES}/core.echo_limit"
SLOWLY = "ref: slowly\naction_ref: ship\nconcurrency: {limit: 2}\n"


async def test_a_policy_is_made_shown_changed_and_deleted(
    admin: Client, clock: ManualClock
) -> None:
    made = await admin.post(POLICIES, NEW)
    assert made.status == 201
    assert set(made.data) == KEYS
    assert made.data["scope"] == {"type": "action", "pack_ref": None, "action_ref": "core.echo"}
    assert made.data["concurrency"] == {"limit": 2, "method": "enqueue", "parameters": []}
    assert (made.data["enabled"], made.data["priority"], made.data["tags"]) == (True, 0, [])
    assert (made.data["rate_limit"], made.data["quotas"], made.data["pack_ref"]) == (
        None,
        [],
        "core",
    )
    await clock.advance(1)
    changed = await admin.put(LIMIT, {"concurrency": {"limit": 0}, "priority": 3, "tags": ["x"]})
    assert changed.data["concurrency"] == {"limit": 0, "method": "enqueue", "parameters": []}
    assert (changed.data["priority"], changed.data["tags"]) == (3, ["x"])
    assert (changed.data["name"], changed.data["scope"]) == ("Echo slowly", made.data["scope"])
    assert changed.data["updated"] == "2026-01-01T00:00:01Z"
    assert (await admin.get(f"{POLICIES}/{made.data['id']}")).data == changed.data
    assert (await admin.delete(LIMIT)).body["success"] is True
    for method in ("GET", "PUT", "DELETE"):
        assert (await admin.send(method, LIMIT)).status == 404


async def test_an_answer_may_be_sent_back_unchanged(admin: Client, clock: ManualClock) -> None:
    made = (await admin.post(POLICIES, {**NEW, "description": "d"})).data
    await clock.advance(1)
    assert (await admin.put(LIMIT, made)).data == made


async def test_a_policy_can_be_turned_to_another_action_and_switched(admin: Client) -> None:
    await admin.post(POLICIES, NEW)
    changes = {"scope": {"action_ref": "core.noop"}, "enabled": False}
    changed = (await admin.put(LIMIT, changes)).data
    assert (changed["scope"]["action_ref"], changed["enabled"]) == ("core.noop", False)
    nothing = {"scope": {"type": "action", "action_ref": "core.nothing"}}
    assert (await admin.put(LIMIT, nothing)).status == 404


NOT_YET: list[tuple[dict[str, Any], str]] = [
    ({"scope": {"type": "global"}}, "scope.type"),
    ({"scope": {"type": "pack", "pack_ref": "core"}}, "scope.type"),
    ({"scope": {"pack_ref": "core"}}, "scope.type"),
    ({"concurrency": {"limit": 1, "method": "cancel"}}, "concurrency.method"),
    ({"concurrency": {"limit": 1, "parameters": ["message"]}}, "concurrency.parameters"),
    ({"rate_limit": {"max_executions": 1, "window_seconds": 60}}, "rate_limit"),
    ({"quotas": [{"quota_type": "executions_total", "limit": 5}]}, "quotas"),
    ({"windows": [{"days": ["mon"], "start": "08:00", "end": "17:00"}]}, "windows"),
    ({"blackouts": [{"from": "2030-01-01T00:00:00Z", "to": "2030-01-02T00:00:00Z"}]}, "blackouts"),
]


@pytest.mark.parametrize(("body", "field"), NOT_YET)
async def test_what_has_no_effect_yet_is_422_and_says_so(
    admin: Client, body: dict[str, Any], field: str
) -> None:
    refused = await admin.post(POLICIES, {**NEW, **body})
    assert is_refused(refused, field)
    assert "not supported yet" in refused.body["details"][field]
    assert (await admin.get(POLICIES)).refs == []
    made = (await admin.post(POLICIES, NEW)).data
    assert is_refused(await admin.put(LIMIT, body), field)
    assert (await admin.get(LIMIT)).data == made


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"ref": "Echo"}, "ref"),
    ({"ref": "lab.x", "pack_ref": "core"}, "ref"),
    ({"name": " "}, "name"),
    ({"scope": None}, "scope"),
    ({"scope": {"type": "action"}}, "scope.action_ref"),
    ({"scope": {"type": "galaxy"}}, "scope.type"),
    ({"concurrency": None}, "concurrency.limit"),
    ({"concurrency": {}}, "concurrency.limit"),
    ({"concurrency": {"limit": -1}}, "concurrency.limit"),
    ({"concurrency": {"limit": 2**31}}, "concurrency.limit"),
    ({"concurrency": {"limit": "2"}}, "concurrency.limit"),
    ({"concurrency": {"limit": True}}, "concurrency.limit"),
    ({"concurrency": {"limit": 1.5}}, "concurrency.limit"),
    ({"concurrency": {"limit": 1, "method": "drop"}}, "concurrency.method"),
    ({"priority": "high"}, "priority"),
    ({"priority": -(2**31) - 1}, "priority"),
    ({"tags": "x"}, "tags"),
]


async def test_a_policy_that_breaks_a_rule_is_422_and_names_the_field(admin: Client) -> None:
    for wrong, field in BROKEN:
        answer = await admin.post(POLICIES, {**NEW, **wrong})
        assert is_refused(answer, field), (wrong, answer.raw)
    assert (await admin.get(POLICIES)).refs == []


async def test_a_missing_pack_or_action_is_404_and_a_taken_ref_409(admin: Client) -> None:
    nothing = {"scope": {"type": "action", "action_ref": "core.nothing"}}
    assert (await admin.post(POLICIES, {**NEW, **nothing})).status == 404
    lab = {"ref": "lab.x", "pack_ref": "lab"}
    assert (await admin.post(POLICIES, {**NEW, **lab})).status == 404
    await admin.post(POLICIES, NEW)
    assert (await admin.post(POLICIES, NEW)).status == 409


async def test_policies_are_listed_also_by_pack_and_action(admin: Client) -> None:
    files = {**SHOP, "policies/slowly.yaml": SLOWLY}
    assert (await admin.upload(archive(files).getvalue())).status == 201
    await admin.post(POLICIES, NEW)
    of_ship = {"type": "action", "action_ref": "shop.ship"}
    await admin.post(POLICIES, {**NEW, "ref": "site.ship", "scope": of_ship})
    everything = await admin.get(POLICIES)
    assert everything.refs == ["core.echo_limit", "shop.slowly", "site.ship"]
    assert all(set(each) == KEYS for each in everything.body["items"])
    assert (await admin.get(POLICIES, page=2, page_size=2)).refs == ["site.ship"]
    for path, expected in (
        ("packs/shop", ["shop.slowly"]),
        ("packs/core", ["core.echo_limit"]),
        ("actions/shop.ship", ["shop.slowly", "site.ship"]),
        ("actions/core.echo", ["core.echo_limit"]),
        ("actions/core.noop", []),
    ):
        assert (await admin.get(f"/api/v1/{path}/policies")).refs == expected, path
    for path in ("packs/nothing", "actions/core.nothing"):
        assert (await admin.get(f"/api/v1/{path}/policies")).status == 404


class TestRights:
    async def test_whoever_may_look_at_queues_sees_them_and_others_do_not(
        self, admin: Client, world: World
    ) -> None:
        await admin.post(POLICIES, NEW)
        viewer = await world.client("viewer", "core.viewer")
        assert (await viewer.get(POLICIES)).refs == ["core.echo_limit"]
        assert (await viewer.get(LIMIT)).data["ref"] == "core.echo_limit"
        none = await world.client("none")
        assert (await none.get(POLICIES)).refs == []
        assert (await none.get("/api/v1/actions/core.echo/policies")).refs == []
        assert (await none.get(LIMIT)).status == 404
        assert (await world.nobody.get(POLICIES)).status == 401

    async def test_a_grant_for_one_pack_shows_that_pack_s(
        self, admin: Client, world: World
    ) -> None:
        await admin.upload(archive({**SHOP, "policies/slowly.yaml": SLOWLY}).getvalue())
        await admin.post(POLICIES, NEW)
        grant = {"resource": "queues", "actions": ["read"], "constraints": {"pack_refs": ["shop"]}}
        await world.permission_set("shop.clerk", grant)
        clerk = await world.client("clerk", "shop.clerk")
        assert (await clerk.get(POLICIES)).refs == ["shop.slowly"]
        assert (await clerk.get(LIMIT)).status == 404

    async def test_only_administrators_write_them(self, admin: Client, world: World) -> None:
        await admin.post(POLICIES, NEW)
        editor = await world.client("editor", "core.editor")
        for method, path, body in (
            ("POST", POLICIES, {**NEW, "ref": "core.mine"}),
            ("PUT", LIMIT, {"concurrency": {"limit": 9}}),
            ("DELETE", LIMIT, None),
        ):
            answer = await editor.send(method, path, body)
            assert answer.status == 403
            assert "the permission set core.admin" in answer.body["error"]
        assert (await admin.get(LIMIT)).data["concurrency"]["limit"] == 2

    async def test_an_editor_s_pack_may_limit_its_own_actions_and_no_others(
        self, admin: Client, world: World
    ) -> None:
        editor = await world.client("editor", "core.editor")
        others = SLOWLY.replace("ship", "core.echo")
        refused = await editor.upload(archive({**SHOP, "policies/p.yaml": others}).getvalue())
        assert refused.status == 403
        assert "policies/p.yaml: a policy over core.echo" in refused.body["error"]
        assert (await admin.get("/api/v1/packs/shop")).status == 404
        own = await editor.upload(archive({**SHOP, "policies/p.yaml": SLOWLY}).getvalue())
        assert own.status == 201
        assert (await admin.get("/api/v1/packs/shop/policies")).refs == ["shop.slowly"]


async def test_an_installation_tells_of_a_policy_that_was_not_loaded(admin: Client) -> None:
    cancel = SLOWLY.replace("2}", "2, method: cancel}")
    answer = await admin.upload(archive({**SHOP, "policies/p.yaml": cancel}).getvalue())
    assert answer.status == 201
    [warning] = answer.data["warnings"]
    assert warning.startswith("policies/p.yaml: concurrency.method: 'cancel' is not supported yet")
    assert (await admin.get(POLICIES)).refs == []


def is_refused(answer: Reply, field: str) -> bool:
    return answer.status == 422 and list(answer.body["details"]) == [field]
