"""/enforcements as clients see it."""

from typing import Any

from tests.contract.api.asgi import Client
from tests.contract.api.plant import EXECUTIONS, Plant

ENFORCEMENTS = "/api/v1/enforcements"
SUMMARY_KEYS = {
    "condition", "created", "event", "id", "rule", "rule_ref", "status", "trigger_ref",
}  # fmt: skip
KEYS = SUMMARY_KEYS | {"conditions", "config", "payload", "resolved_at", "reason", "warnings"}


async def ids(client: Client, **query: Any) -> list[int]:
    return [each["id"] for each in (await client.get(ENFORCEMENTS, **query)).body["items"]]


async def test_an_enforcement_tells_what_a_rule_made_of_an_event(
    plant: Plant, operator: Client
) -> None:
    good = await plant.rule(action_params={"message": "{{ event.payload.a }}{{ event.payload.b }}"})
    bad = await plant.rule(
        "bad", action_ref="core.sleep", action_params={"seconds": "{{ event.payload.a }}"}
    )
    event = await plant.emit({"a": "x"})
    [first, second] = sorted(
        (await operator.get(ENFORCEMENTS)).body["items"], key=lambda each: str(each["rule_ref"])
    )
    assert set(first) >= SUMMARY_KEYS
    assert (first["rule"], first["status"], first["event"]) == (bad.id, "disabled", event.id)
    assert (second["rule"], second["status"]) == (good.id, "processed")
    shown = (await operator.get(f"{ENFORCEMENTS}/{second['id']}")).data
    assert set(shown) >= KEYS
    assert (shown["payload"], shown["config"]) == ({"a": "x"}, {"message": "x"})
    assert (shown["reason"], shown["condition"]) == (None, "all")
    assert "event.payload.b" in shown["warnings"][0]
    assert (shown["conditions"], shown["resolved_at"] is not None) == ({}, True)
    refused = (await operator.get(f"{ENFORCEMENTS}/{first['id']}")).data
    assert (refused["config"], refused["warnings"]) == (None, [])
    assert "seconds" in refused["reason"]
    [execution] = (await operator.get(EXECUTIONS, enforcement=second["id"])).body["items"]
    assert execution["rule_ref"] == good.ref


async def test_enforcements_are_found_by_what_they_are(plant: Plant, operator: Client) -> None:
    await plant.rule()
    await plant.rule(
        "off", action_ref="core.sleep", action_params={"seconds": "{{ event.payload.a }}"}
    )
    first, second = await plant.emit({}), await plant.emit({})
    newest = await ids(operator)
    assert newest == sorted(newest, reverse=True)
    by_rule = {each["rule_ref"]: each for each in (await operator.get(ENFORCEMENTS)).body["items"]}
    on, off = by_rule["shop.on_order"], by_rule["shop.off"]
    expected: list[tuple[dict[str, Any], int]] = [
        ({}, 4),
        ({"rule": on["rule"]}, 2),
        ({"rule": 999_999}, 0),
        ({"event": first.id}, 2),
        ({"event": second.id, "rule_ref": "shop.off"}, 1),
        ({"status": "processed"}, 2),
        ({"status": "created"}, 0),
        ({"status": "disabled", "rule": off["rule"]}, 2),
        ({"trigger_ref": "shop.order"}, 4),
        ({"trigger_ref": "shop.*"}, 4),
        ({"trigger_ref": "core.*"}, 0),
        ({"rule_ref": "shop.*"}, 4),
    ]
    for query, count in expected:
        assert len(await ids(operator, **query)) == count, query
        page = (await operator.get(ENFORCEMENTS, **query, include_total=True)).body
        assert page["pagination"]["total_items"] == count, query
    assert await ids(operator, before=newest[1]) == newest[2:]
    assert (await operator.get(ENFORCEMENTS, status="lost")).status == 422
    for wrong in ("999999", "0", str(2**70)):
        assert (await operator.get(f"{ENFORCEMENTS}/{wrong}")).status == 404


async def test_enforcements_need_a_right(plant: Plant, operator: Client) -> None:
    await plant.rule()
    await plant.emit({})
    [one] = await ids(operator)
    viewer = await plant.client("viewer", "core.viewer")
    for path in (ENFORCEMENTS, f"{ENFORCEMENTS}/{one}"):
        answer = await viewer.get(path)
        assert (answer.status, "permission" in answer.body["error"]) == (403, True)
    grant = {"resource": "enforcements", "actions": ["read"]}
    await plant.callers.permission_set(
        "core.elsewhere", {**grant, "constraints": {"pack_refs": ["core"]}}
    )
    stranger = await plant.client("stranger", "core.elsewhere")
    assert await ids(stranger) == []
    assert (await stranger.get(f"{ENFORCEMENTS}/{one}")).status == 404
