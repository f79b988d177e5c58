"""/triggers and the switches of their webhooks as clients see them."""

from typing import Any

from attune.catalog.steps.webhooks import webhook_target
from tests.contract.api.asgi import Client
from tests.contract.api.world import World

SUMMARY_KEYS = {
    "created", "description", "enabled", "id", "label", "pack_ref", "ref", "updated",
    "webhook_enabled",
}  # fmt: skip
KEYS = SUMMARY_KEYS | {
    "is_adhoc", "out_schema", "pack", "param_schema", "sensor", "sensor_ref", "webhook_key",
}  # fmt: skip
NEW = {"ref": "core.door", "label": "Door", "pack_ref": "core"}
DOOR = "/api/v1/triggers/core.door"


async def test_a_trigger_is_made_shown_changed_and_deleted(admin: Client) -> None:
    schema = {"floor": {"type": "integer"}}
    made = await admin.post("/api/v1/triggers", {**NEW, "param_schema": schema})
    assert made.status == 201
    assert set(made.data) >= KEYS
    assert (made.data["param_schema"], made.data["out_schema"]) == (schema, None)
    assert (made.data["is_adhoc"], made.data["enabled"], made.data["pack_ref"]) == (
        True, True, "core",
    )  # fmt: skip
    changed = await admin.put(DOOR, {"description": {"op": "set", "value": "Opens"}})
    assert (changed.data["description"], changed.data["label"]) == ("Opens", "Door")
    assert (await admin.get(DOOR)).data == changed.data
    assert (await admin.delete(DOOR)).body["success"] is True
    assert (await admin.get(DOOR)).status == 404


async def test_a_trigger_may_be_of_no_pack(admin: Client) -> None:
    made = await admin.post("/api/v1/triggers", {"ref": "house.bell", "label": "Bell"})
    assert (made.data["pack"], made.data["pack_ref"]) == (None, None)
    for wrong, status in (
        ({"ref": "house.bell", "label": "Bell"}, 409),
        ({"ref": "bell", "label": "Bell"}, 422),
        ({"ref": "lab.bell", "label": "Bell", "pack_ref": "lab"}, 404),
        ({"ref": "house.x", "label": "Bell", "pack_ref": "core"}, 422),
    ):
        assert (await admin.post("/api/v1/triggers", wrong)).status == status, wrong


async def test_the_switch_is_a_post_without_a_body(admin: Client) -> None:
    await admin.post("/api/v1/triggers", NEW)
    for switch, state in (("disable", False), ("disable", False), ("enable", True)):
        assert (await admin.post(f"{DOOR}/{switch}")).data["enabled"] is state
        enabled = (await admin.get("/api/v1/triggers/enabled")).refs
        assert ("core.door" in enabled) is state
    assert (await admin.post("/api/v1/triggers/core.nothing/enable")).status == 404


async def test_lists_of_triggers_are_by_ref_also_within_a_pack(admin: Client) -> None:
    await admin.post("/api/v1/triggers", {"ref": "a.a", "label": "A"})
    everything = await admin.get("/api/v1/triggers")
    assert everything.refs[:2] == ["a.a", "core.alert"]
    assert set(everything.body["items"][0]) >= SUMMARY_KEYS
    of_core = await admin.get("/api/v1/packs/core/triggers", per_page=1000)
    assert of_core.refs == everything.refs[1:]


async def test_a_webhook_is_enabled_regenerated_and_disabled(admin: Client) -> None:
    await admin.post("/api/v1/triggers", NEW)
    refused = await admin.post(f"{DOOR}/webhooks/regenerate")
    assert (refused.status, refused.body["code"]) == (400, "wrong_request")
    on = (await admin.post(f"{DOOR}/webhooks/enable")).data
    assert on["webhook_enabled"] is True
    assert on["webhook_key"].startswith("wh_")
    assert on["webhook_url"] == f"/api/v1/webhooks/{on['webhook_key']}"
    assert (await admin.post(f"{DOOR}/webhooks/enable", {})).data["webhook_key"] == on[
        "webhook_key"
    ]
    assert (await admin.get(DOOR)).data["webhook_key"] == on["webhook_key"]
    other = (await admin.post(f"{DOOR}/webhooks/regenerate", {})).data
    assert other["webhook_key"] not in (None, on["webhook_key"])
    off = (await admin.post(f"{DOOR}/webhooks/disable")).data
    assert (off["webhook_enabled"], off["webhook_key"], off["webhook_url"]) == (False, None, None)
    assert (await admin.post("/api/v1/triggers/core.nothing/webhooks/enable")).status == 404


async def test_the_secret_of_a_webhook_is_kept_and_never_shown(admin: Client, world: World) -> None:
    await admin.post("/api/v1/triggers", NEW)
    config = {"hmac": {"enabled": True, "secret": "sesame"}, "payload_size_limit_kb": 8}
    answers = [
        await admin.post(f"{DOOR}/webhooks/enable", {"webhook_config": config}),
        await admin.put(DOOR, {"webhook_config": {"hmac": {"enabled": True}}}),
        await admin.put(DOOR, {"label": "Gate", "webhook_config": None}),
        await admin.get(DOOR),
        await admin.get("/api/v1/triggers"),
    ]
    assert all(b"sesame" not in answer.raw for answer in answers)
    target = await world.database.read(webhook_target, answers[0].data["webhook_key"])
    assert target is not None
    assert target.webhook_config is not None
    assert target.webhook_config.hmac is not None
    assert (target.webhook_config.hmac.secret, target.webhook_config.payload_size_limit_kb) == (
        "sesame", None,
    )  # fmt: skip


BROKEN_CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"hmac": {"enabled": True}}, "webhook_config.hmac.secret"),
    ({"hmac": {"secret": "sesame", "algorithm": "md5"}}, "webhook_config.hmac.algorithm"),
    ({"rate_limit": {"requests": 0}}, "webhook_config.rate_limit.requests"),
    ({"ip_whitelist": {"ips": ["1.2.3"]}}, "webhook_config.ip_whitelist.ips"),
    ({"payload_size_limit_kb": 0}, "webhook_config.payload_size_limit_kb"),
]


async def test_a_webhook_configuration_that_breaks_a_rule_is_422(admin: Client) -> None:
    await admin.post("/api/v1/triggers", NEW)
    for config, field in BROKEN_CONFIGS:
        for answer in (
            await admin.post(f"{DOOR}/webhooks/enable", {"webhook_config": config}),
            await admin.put(DOOR, {"label": "Gate", "webhook_config": config}),
        ):
            assert (answer.status, list(answer.body["details"])) == (422, [field]), answer.raw
            assert b"sesame" not in answer.raw
    shown = (await admin.get(DOOR)).data
    assert (shown["webhook_enabled"], shown["label"]) == (False, "Door")
