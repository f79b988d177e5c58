"""/policies as clients see it."""

from typing import Any

from attune.simulation.clock import ManualClock
from tests.contract.api.asgi import Client, Reply
from tests.contract.api.world import World
from tests.unit.catalog.packs import SHOP, archive

KEYS = {
    "blackouts", "concurrency", "created", "description", "enabled", "id", "is_adhoc", "name", "pack",
    "pack_ref", "priority", "quotas", "rate_limit", "ref", "scope", "shadowed_by", "tags", "updated", "windows",
}  # fmt: skip
NEW: dict[str, Any] = {
    "ref": "core.echo_limit",
    "name": "Echo slowly",
    "scope": {"type": "action", "action_ref": "core.echo"},
    "concurrency": {"limit": 2},
}
POLICIES = "/api/v1/policies"
LIMIT = f"{POLICIES}/core.echo_limit"
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
GATES: dict[str, Any] = {
    "concurrency": {"limit": "auto", "floor": 2, "ceiling": 20, "method": "cancel", "parameters": ["a"]},
    "rate_limit": {"max_executions": 10, "window_seconds": 60},
    "quotas": [
        {"quota_type": "executions_total", "limit": 5},
        {"quota_type": "running_executions", "limit": 0, "per": "identity"},
    ],
    "windows": [
        {"days": ["sat", "sun"], "start": "22:00", "end": "06:00", "timezone": "Europe/Berlin"},
        {"days": DAYS, "start": "00:00", "end": "24:00", "timezone": "UTC"},
    ],
    "blackouts": [
        {"from": "2030-12-24", "to": "2030-12-26"},
        {"from": "2030-01-01T00:00:00Z", "to": "2030-01-02T00:00:00+01:00"},
    ],
}  # fmt: skip
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
    assert made.data["shadowed_by"] is None
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
    for gates in ({"description": "d"}, GATES, {"concurrency": None, "windows": GATES["windows"]}):
        made = (await admin.post(POLICIES, {**NEW, **gates})).data
        await clock.advance(1)
        assert (await admin.put(LIMIT, made)).data == made
        await admin.delete(LIMIT)


async def test_a_policy_can_be_turned_to_another_action_and_switched(admin: Client) -> None:
    await admin.post(POLICIES, NEW)
    changes = {"scope": {"action_ref": "core.noop"}, "enabled": False}
    changed = (await admin.put(LIMIT, changes)).data
    assert (changed["scope"]["action_ref"], changed["enabled"]) == ("core.noop", False)
    nothing = {"scope": {"type": "action", "action_ref": "core.nothing"}}
    assert (await admin.put(LIMIT, nothing)).status == 404


async def test_every_gate_is_shown_as_it_was_written(admin: Client) -> None:
    made = (await admin.post(POLICIES, {**NEW, **GATES})).data
    assert {name: made[name] for name in GATES} == GATES
    shown = (await admin.get(LIMIT)).data
    assert {name: shown[name] for name in GATES} == GATES


async def test_every_scope_is_shown_as_it_was_written(admin: Client) -> None:
    for number, scope in enumerate(
        (
            {"type": "global", "pack_ref": None, "action_ref": None},
            {"type": "pack", "pack_ref": "core", "action_ref": None},
            {"type": "action", "pack_ref": None, "action_ref": "core.noop"},
        )
    ):
        body = {**NEW, "ref": f"site.p{number}", "scope": scope}
        assert (await admin.post(POLICIES, body)).data["scope"] == scope
    short = {**NEW, "ref": "site.short", "scope": {"pack_ref": "core"}}
    assert (await admin.post(POLICIES, short)).data["scope"]["type"] == "pack"


async def test_a_change_names_only_what_it_changes(admin: Client) -> None:
    made = (await admin.post(POLICIES, {**NEW, **GATES})).data
    changed = (await admin.put(LIMIT, {"concurrency": {"ceiling": 30}})).data
    assert changed["concurrency"] == {**made["concurrency"], "ceiling": 30}
    fixed = (await admin.put(LIMIT, {"concurrency": {"limit": 3}})).data
    assert fixed["concurrency"] == {"limit": 3, "method": "cancel", "parameters": ["a"]}
    assert fixed["windows"] == made["windows"]
    auto = (await admin.put(LIMIT, {"concurrency": {"limit": "auto"}})).data
    assert (auto["concurrency"]["floor"], auto["concurrency"]["ceiling"]) == (1, 100)


async def test_a_gate_is_taken_away_with_null_or_an_empty_list(admin: Client) -> None:
    await admin.post(POLICIES, {**NEW, **GATES})
    none: dict[str, Any] = {"concurrency": None, "rate_limit": None, "quotas": [], "windows": []}
    changed = (await admin.put(LIMIT, none)).data
    assert {name: changed[name] for name in none} == none
    assert changed["blackouts"] == GATES["blackouts"]
    refused = await admin.put(LIMIT, {"blackouts": []})
    assert is_refused(refused, "concurrency")
    assert "a policy needs at least one of concurrency, rate_limit" in refused.body["error"]
    assert (await admin.put(LIMIT, {"concurrency": {"limit": 1}, "blackouts": []})).status == 200


async def test_a_policy_that_another_goes_before_says_which(admin: Client) -> None:
    await admin.post(POLICIES, NEW)
    second = await admin.post(POLICIES, {**NEW, "ref": "core.second"})
    assert second.data["shadowed_by"] == "core.echo_limit"
    raised = await admin.put(f"{POLICIES}/core.second", {"priority": 1})
    assert raised.data["shadowed_by"] is None
    assert (await admin.get(LIMIT)).data["shadowed_by"] == "core.second"
    await admin.post(POLICIES, {**NEW, "ref": "core.wide", "scope": {"type": "global"}})
    for path in (POLICIES, "/api/v1/packs/core/policies"):
        items = (await admin.get(path)).body["items"]
        assert {each["ref"]: each["shadowed_by"] for each in items} == {
            "core.echo_limit": "core.second",
            "core.second": None,
            "core.wide": None,
        }
    await admin.delete(f"{POLICIES}/core.second")
    assert (await admin.get(LIMIT)).data["shadowed_by"] is None


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"ref": "Echo"}, "ref"),
    ({"ref": "lab.x", "pack_ref": "core"}, "ref"),
    ({"name": " "}, "name"),
    ({"scope": None}, "scope"),
    ({"scope": {}}, "scope.type"),
    ({"scope": "core.echo"}, "scope"),
    ({"scope": {"type": "action"}}, "scope.action_ref"),
    ({"scope": {"type": "pack"}}, "scope.pack_ref"),
    ({"scope": {"type": "galaxy"}}, "scope.type"),
    ({"scope": {"type": "global", "pack_ref": "core"}}, "scope.pack_ref"),
    ({"scope": {"action": "core.echo", "type": "global"}}, "scope.action"),
    ({"concurrency": None}, "concurrency"),
    ({"concurrency": {}}, "concurrency.limit"),
    ({"concurrency": {"limit": -1}}, "concurrency.limit"),
    ({"concurrency": {"limit": 2**31}}, "concurrency.limit"),
    ({"concurrency": {"limit": "2"}}, "concurrency.limit"),
    ({"concurrency": {"limit": True}}, "concurrency.limit"),
    ({"concurrency": {"limit": 1.5}}, "concurrency.limit"),
    ({"concurrency": {"limit": 1, "method": "drop"}}, "concurrency.method"),
    ({"concurrency": {"limit": 1, "ceiling": 3}}, "concurrency.ceiling"),
    ({"concurrency": {"limit": 1, "burst": 3}}, "concurrency.burst"),
    ({"concurrency": {"limit": "auto"}, "scope": {"type": "global"}}, "concurrency.limit"),
    ({"rate_limit": {"max_executions": 0, "window_seconds": 1}}, "rate_limit.max_executions"),
    ({"rate_limit": {"max_executions": 1, "window_seconds": 0}}, "rate_limit.window_seconds"),
    ({"quotas": [{"quota_type": "executions_total", "limit": -1}]}, "quotas.0.limit"),
    ({"quotas": {}}, "quotas"),
    ({"windows": [{"start": "8", "end": "17:00"}]}, "windows.0.start"),
    ({"windows": [{"start": "08:00", "end": "17:00", "timezone": "Mars"}]}, "windows.0.timezone"),
    ({"windows": [{"start": "08:00", "end": "17:00", "days": []}]}, "windows.0.days"),
    ({"blackouts": [{"from": "2030-01-01", "to": "2030-01-01T00:00"}]}, "blackouts.0.to"),
    ({"blackouts": [{"from": "2030-01-02", "to": "2030-01-01"}]}, "blackouts.0.to"),
    ({"blackouts": ["2030-01-02"]}, "blackouts.0"),
    ({"priority": "high"}, "priority"),
    ({"priority": -(2**31) - 1}, "priority"),
    ({"tags": "x"}, "tags"),
]


async def test_a_policy_that_breaks_a_rule_is_422_and_names_the_field(admin: Client) -> None:
    for wrong, field in BROKEN:
        answer = await admin.post(POLICIES, {**NEW, **wrong})
        assert is_refused(answer, field), (wrong, answer.raw)
    assert (await admin.get(POLICIES)).refs == []
    made = (await admin.post(POLICIES, NEW)).data
    for wrong, field in BROKEN:
        if field.startswith(("rate_limit", "quotas", "windows", "blackouts", "concurrency.")):
            answer = await admin.put(LIMIT, wrong)
            assert is_refused(answer, field) or wrong == {"concurrency": {}}, (wrong, answer.raw)
    assert (await admin.get(LIMIT)).data == made


async def test_a_missing_pack_or_action_is_404_and_a_taken_ref_409(admin: Client) -> None:
    nothing = {"scope": {"type": "action", "action_ref": "core.nothing"}}
    assert (await admin.post(POLICIES, {**NEW, **nothing})).status == 404
    no_pack = {"scope": {"type": "pack", "pack_ref": "lab"}}
    assert (await admin.post(POLICIES, {**NEW, **no_pack})).status == 404
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

    async def test_an_editor_s_pack_may_limit_what_is_in_it_and_no_others(
        self, admin: Client, world: World
    ) -> None:
        editor = await world.client("editor", "core.editor")
        for scope, over in (
            ("action_ref: core.echo", "core.echo"),
            ("pack_ref: core", "core"),
            ("scope: {type: global}", "everything"),
        ):
            files = {**SHOP, "policies/p.yaml": SLOWLY.replace("action_ref: ship", scope)}
            refused = await editor.upload(archive(files).getvalue())
            assert refused.status == 403
            assert f"policies/p.yaml: a policy over {over}" in refused.body["error"]
        assert (await admin.get("/api/v1/packs/shop")).status == 404
        own = await editor.upload(archive({**SHOP, "policies/p.yaml": SLOWLY}).getvalue())
        assert own.status == 201
        assert (await admin.get("/api/v1/packs/shop/policies")).refs == ["shop.slowly"]


async def test_an_installation_is_refused_for_a_policy_that_breaks_a_rule(admin: Client) -> None:
    late = SLOWLY + "windows: [{start: '08:00', end: '25:00'}]\n"
    answer = await admin.upload(archive({**SHOP, "policies/p.yaml": late}).getvalue())
    assert answer.status == 422
    [fault] = answer.body["details"]["faults"]
    assert fault.startswith("policies/p.yaml: windows.0.end: '25:00' is not a time of day")


async def test_an_installation_tells_of_a_policy_that_another_goes_before(admin: Client) -> None:
    first, second = SLOWLY.replace("slowly", "a"), SLOWLY.replace("slowly", "b")
    files = {**SHOP, "policies/a.yaml": first, "policies/b.yaml": second + "priority: 1\n"}
    answer = await admin.upload(archive(files).getvalue())
    assert answer.data["warnings"] == [
        "policies/a.yaml: has no effect: 'shop.b', also over shop.ship, goes before it"
    ]


def is_refused(answer: Reply, field: str) -> bool:
    return answer.status == 422 and list(answer.body["details"]) == [field]
