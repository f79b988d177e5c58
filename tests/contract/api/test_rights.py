"""Who may see and do what."""

from typing import Any

import pytest

from tests.contract.api.asgi import Client, Reply
from tests.contract.api.world import World
from tests.unit.catalog.packs import SHOP, archive

LAB = {"ref": "lab", "label": "Lab", "version": "1"}
ACTION = {"ref": "shop.mine", "pack_ref": "shop", "label": "Mine", "entrypoint": "true"}
RULE = {
    "ref": "shop.rule",
    "pack_ref": "shop",
    "label": "Rule",
    "trigger_ref": "core.webhook",
    "action_ref": "core.echo",
}
RUNTIME = {"ref": "shop.ruby", "pack_ref": "shop", "name": "Ruby"}
TRIGGER = {"ref": "shop.bell", "pack_ref": "shop", "label": "Bell"}


def is_refusal(answer: Reply) -> bool:
    return answer.status == 403 and "permission" in answer.body["error"]


@pytest.fixture
async def shop(admin: Client) -> Client:
    """The administrator, once the pack `shop` is there."""
    assert (await admin.upload(archive(SHOP).getvalue())).status == 201
    return admin


READS = ["packs/shop", "actions/shop.ship", "triggers/shop.ordered", "rules/shop.on_order"]


async def test_one_without_rights_sees_standard_packs_and_nothing_else(
    shop: Client, world: World
) -> None:
    none = await world.client("none")
    assert (await none.get("/api/v1/packs")).refs == ["core"]
    for kind in ("actions", "triggers", "runtimes"):
        found = await none.get(f"/api/v1/{kind}")
        assert found.refs
        assert all(ref.startswith("core.") for ref in found.refs)
        assert found.body["pagination"]["total_items"] == len(found.refs)
    assert (await none.get("/api/v1/rules")).refs == []
    assert (await none.get("/api/v1/actions/core.echo")).data["ref"] == "core.echo"
    for path in READS:
        assert (await none.get(f"/api/v1/{path}")).status == 404
    for path in ("packs/shop/actions", "triggers/shop.ordered/rules", "actions/shop.ship/rules"):
        assert (await none.get(f"/api/v1/{path}")).status == 404


async def test_a_viewer_sees_everything_that_is_installed_and_changes_nothing(
    shop: Client, world: World
) -> None:
    viewer = await world.client("viewer", "core.viewer")
    for path in READS:
        assert (await viewer.get(f"/api/v1/{path}")).status == 200
    assert (await viewer.get("/api/v1/rules")).refs == ["shop.on_order"]
    for method, path, body in CHANGES:
        answer = await viewer.send(method, f"/api/v1/{path}", body)
        assert is_refusal(answer), (method, path, answer.status)
    assert is_refusal(await viewer.upload(archive(SHOP).getvalue(), force="true"))


CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "packs", LAB), ("PUT", "packs/shop", {"label": "x"}), ("DELETE", "packs/shop", None),
    ("POST", "packs/install", {"source": "/nothing"}),
    ("POST", "packs/register", {"path": "/nothing"}),
    ("POST", "packs/shop/workflows/sync", None),
    ("POST", "actions", ACTION), ("PUT", "actions/shop.ship", {"label": "x"}),
    ("DELETE", "actions/shop.ship", None),
    ("POST", "triggers", TRIGGER), ("PUT", "triggers/shop.ordered", {"label": "x"}),
    ("DELETE", "triggers/shop.ordered", None), ("POST", "triggers/shop.ordered/disable", None),
    ("POST", "triggers/shop.ordered/enable", None),
    ("POST", "triggers/shop.ordered/webhooks/enable", None),
    ("POST", "triggers/shop.ordered/webhooks/disable", None),
    ("POST", "triggers/shop.ordered/webhooks/regenerate", None),
    ("POST", "rules", RULE), ("PUT", "rules/shop.on_order", {"label": "x"}),
    ("DELETE", "rules/shop.on_order", None), ("POST", "rules/shop.on_order/disable", None),
    ("POST", "rules/shop.on_order/enable", None),
    ("POST", "runtimes", RUNTIME), ("PUT", "runtimes/core.shell", {"name": "x"}),
    ("DELETE", "runtimes/core.shell", None),
]  # fmt: skip


async def test_an_executor_changes_nothing_either(shop: Client, world: World) -> None:
    executor = await world.client("executor", "core.executor")
    for method, path, body in CHANGES:
        assert is_refusal(await executor.send(method, f"/api/v1/{path}", body)), (method, path)


async def test_an_editor_writes_but_does_not_delete(shop: Client, world: World) -> None:
    editor = await world.client("editor", "core.editor")
    for path, body in (("actions", ACTION), ("rules", RULE), ("runtimes", RUNTIME), ("packs", LAB)):
        assert (await editor.post(f"/api/v1/{path}", body)).status == 201, path
    for path in ("actions/shop.mine", "rules/shop.rule", "packs/lab", "packs/shop"):
        assert (await editor.put(f"/api/v1/{path}", {"label": "x"})).data["label"] == "x"
        assert is_refusal(await editor.delete(f"/api/v1/{path}"))
    assert (await editor.post("/api/v1/rules/shop.rule/disable")).status == 200
    assert is_refusal(await editor.post("/api/v1/triggers", TRIGGER))
    assert (await editor.upload(archive(SHOP).getvalue(), force="true")).status == 201


async def test_a_pack_made_by_hand_is_seen_by_its_maker_alone(world: World, admin: Client) -> None:
    maker = await world.client("maker", "core.editor")
    made = (await maker.post("/api/v1/packs", LAB)).data
    other = await world.client("other", "core.editor")
    path = f"/api/v1/packs/{made['id']}"
    for client, seen in ((maker, True), (admin, True), (other, False)):
        assert ("lab" in (await client.get("/api/v1/packs")).refs) is seen
        assert (await client.get(path)).status == (200 if seen else 404)
        assert (await client.get(f"{path}/actions")).status == (200 if seen else 404)
    assert (await other.put(path, {"label": "Mine now"})).status == 404
    inside = {**ACTION, "ref": "lab.x", "pack_ref": "lab"}
    assert (await other.post("/api/v1/actions", inside)).status == 404
    files = {**SHOP, "pack.yaml": "ref: lab\nlabel: Mine now\nversion: 1.0.0\n"}
    only_head = {"pack.yaml": files["pack.yaml"]}
    stolen = await other.upload(archive(only_head).getvalue(), force="true")
    assert is_refusal(stolen)
    assert (await maker.get(path)).data["label"] == "Lab"


@pytest.mark.parametrize(
    "constraints",
    [{"pack_refs": ["lab"]}, {"refs": ["lab"]}, {"owner": "any"}, {"ids": "its own"}],
)
async def test_a_grant_that_names_a_pack_opens_it(
    world: World, admin: Client, constraints: dict[str, Any]
) -> None:
    made = (await admin.post("/api/v1/packs", LAB)).data
    if "ids" in constraints:
        constraints = {"ids": [made["id"]]}
    grant = {"resource": "packs", "actions": ["read"], "constraints": constraints}
    await world.permission_set("x.reader", grant)
    reader = await world.client("reader", "x.reader")
    assert (await reader.get("/api/v1/packs")).refs == ["core", "lab"]
    assert (await reader.get("/api/v1/packs/lab")).status == 200


async def test_a_grant_on_attributes_opens_no_pack_of_another(world: World, admin: Client) -> None:
    await admin.post("/api/v1/packs", LAB)
    await admin.upload(archive(SHOP).getvalue())
    grant = {
        "resource": "packs", "actions": ["read"], "constraints": {"attributes": {"team": "a"}},
    }  # fmt: skip
    await world.permission_set("x.team", grant)
    ours = await world.client("ours", "x.team", team="a")
    theirs = await world.client("theirs", "x.team", team="b")
    assert (await ours.get("/api/v1/packs")).refs == ["core", "shop"]
    assert (await theirs.get("/api/v1/packs")).refs == ["core"]


async def test_constraints_bind_lists_looks_and_deeds_alike(shop: Client, world: World) -> None:
    of_shop = {"constraints": {"pack_refs": ["shop"]}}
    await world.permission_set(
        "x.shopkeeper",
        {"resource": "actions", "actions": ["read", "create", "update"], **of_shop},
        {"resource": "rules", "actions": ["read", "update"], "constraints": {"owner": "self"}},
        {"resource": "rules", "actions": ["create"]},
    )
    keeper = await world.client("keeper", "x.shopkeeper")
    assert (await keeper.post("/api/v1/actions", ACTION)).status == 404  # its pack cannot be seen
    assert (await keeper.put("/api/v1/actions/shop.ship", {"label": "x"})).status == 200
    assert is_refusal(await keeper.put("/api/v1/actions/core.echo", {"label": "x"}))
    assert {"core.echo", "shop.ship"} <= set((await keeper.get("/api/v1/actions")).refs)
    mine = {**RULE, "ref": "core.mine", "pack_ref": "core"}
    assert (await keeper.post("/api/v1/rules", mine)).status == 201
    assert (await keeper.get("/api/v1/rules")).refs == ["core.mine"]
    assert (await keeper.get("/api/v1/rules/shop.on_order")).status == 404
    assert (await keeper.post("/api/v1/rules/core.mine/disable")).status == 200
    assert (await keeper.post("/api/v1/rules/shop.on_order/disable")).status == 404


async def test_nobody_gives_away_more_than_he_has(shop: Client, world: World) -> None:
    editor = await world.client("editor", "core.editor")
    gift = "default_execution_permission_set_refs"
    for sets, status in (
        (["core.admin"], 403), (["core.viewer"], 201), (["standard"], 201), (["core.editor"], 201),
    ):  # fmt: skip
        body = {**ACTION, "ref": f"shop.with_{sets[0].replace('.', '_')}", gift: sets}
        assert (await editor.post("/api/v1/actions", body)).status == status, sets
        rule = {**RULE, "ref": body["ref"], "permission_set_refs": sets}
        assert (await editor.post("/api/v1/rules", rule)).status == status, sets
    refused = await editor.put("/api/v1/actions/shop.ship", {gift: ["core.admin"]})
    assert is_refusal(refused)
    assert list(refused.body["details"]) == ["field"]
    assert (await shop.put("/api/v1/actions/shop.ship", {gift: ["core.admin"]})).status == 200


async def test_what_holds_more_cannot_be_turned_to_one_s_own_ends(
    shop: Client, world: World
) -> None:
    editor = await world.client("editor", "core.editor")
    gift = {"default_execution_permission_set_refs": ["core.admin"]}
    await shop.put("/api/v1/actions/shop.ship", gift)
    await shop.put("/api/v1/rules/shop.on_order", {"permission_set_refs": ["core.admin"]})
    assert is_refusal(await editor.put("/api/v1/actions/shop.ship", {"entrypoint": "evil.py"}))
    assert is_refusal(await editor.put("/api/v1/rules/shop.on_order", {"action_ref": "core.noop"}))
    assert (await editor.put("/api/v1/actions/shop.ship", {"label": "x"})).status == 200
    assert (await editor.post("/api/v1/rules/shop.on_order/disable")).status == 200


async def test_a_pack_brings_nobody_more_than_its_installer_has(world: World) -> None:
    editor = await world.client("editor", "core.editor")
    action = SHOP["actions/ship.yaml"]
    everything = "grants:\n  - {resource: identities, actions: [delete]}\n"
    for extra in (
        {"actions/ship.yaml": f"{action}default_execution_permission_set_refs: [core.admin]\n"},
        {"permission_sets/all.yaml": f"ref: shop.all\n{everything}"},
    ):
        answer = await editor.upload(archive({**SHOP, **extra}).getvalue())
        assert is_refusal(answer), answer.raw
        assert "shop" not in (await editor.get("/api/v1/packs")).refs
    modest = "ref: shop.look\ngrants:\n  - {resource: packs, actions: [read]}\n"
    files = {**SHOP, "permission_sets/look.yaml": modest}
    assert (await editor.upload(archive(files).getvalue())).status == 201


async def test_the_token_of_an_execution_has_its_sets_and_nothing_else(
    world: World, admin: Client
) -> None:
    identity = await world.identity("boss", "core.admin")
    assert (await admin.post("/api/v1/packs", LAB)).status == 201
    bare = await world.execution(identity)
    assert (await bare.get("/api/v1/packs")).refs == ["core"]
    assert is_refusal(await bare.post("/api/v1/packs", {**LAB, "ref": "other"}))
    full = await world.execution(identity, "core.admin")
    assert (await full.get("/api/v1/packs")).refs == ["core", "lab"]
    editor = await world.identity("editor", "core.editor")
    program = await world.execution(editor, "core.editor")
    assert (await program.post("/api/v1/packs", {**LAB, "ref": "own"})).status == 201
    assert (await program.get("/api/v1/packs/own")).status == 404


async def test_a_changed_permission_set_counts_in_the_next_request(
    world: World, admin: Client
) -> None:
    reader = await world.client("reader", "shop.look")
    assert (await reader.get("/api/v1/rules/shop.on_order")).status == 404
    grants = "grants:\n  - {resource: rules, actions: [read]}\n"
    files = {**SHOP, "permission_sets/look.yaml": f"ref: shop.look\n{grants}"}
    assert (await admin.upload(archive(files).getvalue())).status == 201
    assert (await reader.get("/api/v1/rules/shop.on_order")).status == 200
