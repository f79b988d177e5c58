"""/rules as clients see it."""

from typing import Any

from attune.simulation.clock import ManualClock
from tests.contract.api.asgi import Client
from tests.contract.api.world import World

SUMMARY_KEYS = {
    "action_params", "action_ref", "created", "description", "enabled", "id", "label", "pack_ref",
    "permission_set_refs", "ref", "trigger_params", "trigger_ref", "updated",
}  # fmt: skip
KEYS = SUMMARY_KEYS | {"action", "conditions", "is_adhoc", "owner_identity", "pack", "trigger"}
NEW = {
    "ref": "core.greet",
    "pack_ref": "core",
    "label": "Greet",
    "trigger_ref": "core.webhook",
    "action_ref": "core.echo",
}
GREET = "/api/v1/rules/core.greet"


async def test_a_rule_is_made_shown_changed_and_deleted(admin: Client) -> None:
    made = await admin.post(
        "/api/v1/rules", {**NEW, "action_params": {"message": "{{ event.id }}"}}
    )
    assert made.status == 201
    assert set(made.data) >= KEYS
    assert (made.data["conditions"], made.data["trigger_params"]) == ({}, {})
    assert (made.data["enabled"], made.data["is_adhoc"]) == (True, True)
    assert isinstance(made.data["owner_identity"], int)
    changed = await admin.put(GREET, {"conditions": {"expression": "event.payload.x > 3"}})
    assert changed.data["conditions"] == {"expression": "event.payload.x > 3"}
    assert changed.data["action_params"] == {"message": "{{ event.id }}"}
    assert (await admin.get(f"/api/v1/rules/{made.data['id']}")).data == changed.data
    assert (await admin.delete(GREET)).body["success"] is True
    assert (await admin.get(GREET)).status == 404


async def test_a_rule_can_be_turned_to_another_trigger_and_action(admin: Client) -> None:
    await admin.post("/api/v1/rules", NEW)
    changes = {"trigger_ref": "core.intervaltimer", "trigger_params": {"interval": 5},
               "action_ref": "core.noop"}  # fmt: skip
    changed = (await admin.put(GREET, changes)).data
    assert {name: changed[name] for name in changes} == changes
    trigger = (await admin.get("/api/v1/triggers/core.intervaltimer")).data
    assert changed["trigger"] == trigger["id"]
    assert (await admin.put(GREET, {"action_ref": "core.nothing"})).status == 404


BROKEN_RULES: list[tuple[dict[str, Any], str]] = [
    ({"ref": "other.greet"}, "ref"),
    ({"label": ""}, "label"),
    ({"action_params": []}, "action_params"),
    ({"trigger_ref": "core.intervaltimer", "trigger_params": {"unit": "years"}},
     "trigger_params.unit"),
    ({"action_ref": "core.sleep", "action_params": {"seconds": "long"}}, "action_params.seconds"),
    ({"action_params": {"message": "{{ 1 + }}"}}, "action_params.message"),
    ({"conditions": {"expression": "1 +"}}, "conditions.expression"),
    ({"conditions": {"all": [{"field": "x", "operator": "likes"}]}}, "conditions.all[0].operator"),
    ({"permission_set_refs": ["no.such"]}, "permission_set_refs"),
]  # fmt: skip


async def test_a_rule_that_breaks_a_rule_is_422_and_names_the_place(admin: Client) -> None:
    for wrong, field in BROKEN_RULES:
        answer = await admin.post("/api/v1/rules", {**NEW, **wrong})
        assert (answer.status, list(answer.body["details"])) == (422, [field]), answer.raw
    assert (await admin.get(GREET)).status == 404


async def test_a_missing_pack_trigger_or_action_is_404_and_a_taken_ref_409(admin: Client) -> None:
    for wrong in (
        {"pack_ref": "lab", "ref": "lab.x"},
        {"trigger_ref": "core.nothing"},
        {"action_ref": "core.nothing"},
    ):
        assert (await admin.post("/api/v1/rules", {**NEW, **wrong})).status == 404
    await admin.post("/api/v1/rules", NEW)
    assert (await admin.post("/api/v1/rules", NEW)).status == 409


async def test_a_list_of_conditions_is_shown_as_an_object(admin: Client) -> None:
    listed = [{"field": "event.payload.x", "operator": "equals", "value": 1}]
    made = await admin.post("/api/v1/rules", {**NEW, "conditions": listed})
    assert made.data["conditions"] == {"all": listed}


async def test_the_switches_answer_the_rule_and_tell_of_it(
    admin: Client, world: World, clock: ManualClock
) -> None:
    await admin.post("/api/v1/rules", NEW)
    await clock.advance(1)
    off = (await admin.post(f"{GREET}/disable")).data
    assert (off["enabled"], off["updated"]) == (False, "2026-01-01T00:00:01Z")
    assert (await admin.get("/api/v1/rules/enabled")).refs == []
    assert (await admin.post(f"{GREET}/enable", {})).data["enabled"] is True
    assert (await admin.get("/api/v1/rules/enabled")).refs == ["core.greet"]
    await admin.put(GREET, {"label": "Hello"})
    await admin.put(GREET, {"label": ""})
    await admin.delete(GREET)
    assert world.told.found == [
        (f"rule.{word}", "core.greet")
        for word in ("created", "disabled", "enabled", "updated", "deleted")
    ]
    assert (await admin.post(f"{GREET}/enable")).status == 404


async def test_rules_are_listed_by_pack_action_and_trigger(admin: Client) -> None:
    await admin.post("/api/v1/packs", {"ref": "lab", "label": "Lab", "version": "1"})
    await admin.post("/api/v1/rules", NEW)
    other = {"ref": "lab.rest", "pack_ref": "lab", "action_ref": "core.noop"}
    await admin.post("/api/v1/rules", {**NEW, **other, "trigger_ref": "core.alert"})
    everything = await admin.get("/api/v1/rules")
    assert everything.refs == ["core.greet", "lab.rest"]
    assert set(everything.body["items"][0]) >= SUMMARY_KEYS
    action = (await admin.get("/api/v1/actions/core.noop")).data
    for path, expected in (
        ("packs/lab", ["lab.rest"]),
        ("packs/core", ["core.greet"]),
        ("actions/core.echo", ["core.greet"]),
        (f"actions/{action['id']}", ["lab.rest"]),
        ("triggers/core.alert", ["lab.rest"]),
        ("triggers/core.webhook", ["core.greet"]),
        ("triggers/core.queue_empty", []),
    ):
        assert (await admin.get(f"/api/v1/{path}/rules")).refs == expected
    for path in ("packs/nothing", "actions/core.nothing", "triggers/core.nothing"):
        assert (await admin.get(f"/api/v1/{path}/rules")).status == 404
