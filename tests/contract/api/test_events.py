"""/events as clients see it."""

from typing import Any

import pytest

from tests.contract.api.asgi import Client
from tests.contract.api.plant import Plant

EVENTS = "/api/v1/events"
SUMMARY_KEYS = {
    "created", "has_payload", "id", "rule", "rule_ref", "source", "source_ref", "trigger",
    "trigger_ref",
}  # fmt: skip
KEYS = (SUMMARY_KEYS - {"has_payload"}) | {"config", "payload", "rules", "updated"}
ORDER = {"trigger_ref": "shop.order"}


async def ids(client: Client, **query: Any) -> list[int]:
    return [each["id"] for each in (await client.get(EVENTS, **query)).body["items"]]


async def test_an_event_is_answered_by_the_rules_and_says_how(
    plant: Plant, operator: Client
) -> None:
    await plant.rule()
    await plant.rule("off", enabled=False)
    made = await operator.post(EVENTS, {**ORDER, "payload": {"deep": [{"a": None}]}})
    assert made.status == 201
    assert set(made.data) >= KEYS
    assert (made.data["payload"], made.data["config"]) == ({"deep": [{"a": None}]}, None)
    shown = (await operator.get(f"{EVENTS}/{made.data['id']}")).data
    assert shown["payload"] == made.data["payload"]
    assert {(each["rule_ref"], each["matched"]) for each in shown["rules"]} == {
        ("shop.on_order", True), ("shop.off", False),
    }  # fmt: skip
    assert all(each["reason"] for each in shown["rules"])


@pytest.mark.parametrize(
    ("sent", "answered"),
    [({}, {}), (None, {}), ([1, "x"], [1, "x"]), ("text", "text"), (0, 0), (False, False)],
)
async def test_any_json_is_a_payload(
    quiet: Plant, watcher: Client, sent: Any, answered: Any
) -> None:
    await quiet.rule()
    made = (await watcher.post(EVENTS, {**ORDER, "payload": sent, "config": {"a": 1}})).data
    shown = (await watcher.get(f"{EVENTS}/{made['id']}")).data
    assert shown["payload"] == made["payload"] == answered
    assert shown["config"] == {"a": 1}
    [listed] = (await watcher.get(EVENTS)).body["items"]
    assert listed["has_payload"] is (answered != {})


async def test_an_event_may_be_for_one_rule_alone(plant: Plant, operator: Client) -> None:
    mine, _ = await plant.rule(), await plant.rule("other")
    bound = {**ORDER, "trigger_instance_id": f"rule_{mine.id}"}
    event = (await operator.post(EVENTS, bound)).data
    assert (event["rule"], event["rule_ref"]) == (mine.id, "shop.on_order")
    found = (await operator.get("/api/v1/enforcements", event=event["id"])).body["items"]
    assert [each["rule_ref"] for each in found] == ["shop.on_order"]


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({}, 422, "trigger_ref"),
    ({"trigger_ref": "shop.nothing"}, 404, "shop.nothing"),
    ({**ORDER, "config": []}, 422, "config"),
    ({**ORDER, "payload": {"x": "\0"}}, 422, "payload.x"),
    ({**ORDER, "trigger_instance_id": "rule_x"}, 422, "trigger_instance_id"),
    ({**ORDER, "trigger_instance_id": "7"}, 422, "trigger_instance_id"),
    ({**ORDER, "trigger_instance_id": "rule_999999"}, 404, "rule 999999"),
    ({**ORDER, "trigger_instance_id": "rule_" + "9" * 40}, 422, "trigger_instance_id"),
    ({"trigger_ref": "core.alert", "trigger_instance_id": "rule_1"}, 422, "trigger_instance_id"),
    ({**ORDER, "idempotency_key": ""}, 422, "idempotency_key"),
]


async def test_a_bad_event_is_refused_and_takes_the_others_with_it(
    quiet: Plant, watcher: Client
) -> None:
    assert (await quiet.rule()).id == 1
    for body, status, word in REFUSED:
        answer = await watcher.post(EVENTS, body)
        assert (answer.status, word in answer.body["error"]) == (status, True), (body, answer.raw)
        many = await watcher.post(f"{EVENTS}/many", {"events": [ORDER, body]})
        assert (many.status, word in many.body["error"]) == (status, True), (body, many.raw)
    too_many = await watcher.post(f"{EVENTS}/many", {"events": [ORDER] * 10_001})
    assert (too_many.status, list(too_many.body["details"])) == (422, ["events"])
    assert (await watcher.post(EVENTS, b"{")).status == 400
    assert await ids(watcher) == []


async def test_many_events_come_in_their_order_and_a_key_counts_once(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.rule()
    wanted = [{**ORDER, "payload": {"n": n}} for n in range(500)]
    made = await watcher.post(f"{EVENTS}/many", {"events": wanted})
    assert made.status == 201
    assert [each["payload"]["n"] for each in made.data] == list(range(500))
    keyed = {**ORDER, "idempotency_key": "once", "payload": {"first": True}}
    first = (await watcher.post(EVENTS, keyed)).data
    again = await watcher.post(EVENTS, {**keyed, "payload": {"first": False}})
    assert (again.data["id"], again.data["payload"]) == (first["id"], {"first": True})
    page = (await watcher.get(EVENTS, include_total=True, per_page=10, page=51)).body
    assert page["pagination"]["total_items"] == 501
    assert [each["id"] for each in page["items"]] == [made.data[0]["id"]]


async def test_events_are_found_by_what_they_are(quiet: Plant, watcher: Client) -> None:
    rule = await quiet.rule()
    plain = (await watcher.post(EVENTS, ORDER)).data
    bound = (await watcher.post(EVENTS, {**ORDER, "trigger_instance_id": f"rule_{rule.id}"})).data
    alert = (await watcher.post(EVENTS, {"trigger_ref": "core.alert"})).data
    await quiet.emit(source=77, source_ref="sensor")
    everything = await ids(watcher)
    sensed = everything[0]
    assert everything[1:] == [alert["id"], bound["id"], plain["id"]]
    of_shop = [sensed, bound["id"], plain["id"]]
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({"trigger": plain["trigger"]}, of_shop),
        ({"trigger": 999_999}, []),
        ({"trigger_ref": "shop.order"}, of_shop),
        ({"trigger_ref": "core.*"}, [alert["id"]]),
        ({"rule_ref": "shop.on_order"}, [bound["id"]]),
        ({"rule_ref": "shop.*"}, [bound["id"]]),
        ({"source": 77}, [sensed]),
        ({"source": "sensor"}, [sensed]),
        ({"source": "webhook"}, []),
        ({"before": bound["id"]}, [plain["id"]]),
    ]
    for query, found in expected:
        assert await ids(watcher, **query) == found, query
        if "before" not in query:
            counted = (await watcher.get(EVENTS, **query, include_total=True)).body
            assert counted["pagination"]["total_items"] == len(found), query
    [first, *_] = (await watcher.get(EVENTS)).body["items"]
    assert set(first) >= SUMMARY_KEYS
    for wrong in ("999999", "0", str(2**70)):
        assert (await watcher.get(f"{EVENTS}/{wrong}")).status == 404
    assert (await watcher.get(EVENTS, trigger=0)).status == 422


async def test_events_need_rights_that_may_be_for_a_pack(quiet: Plant, watcher: Client) -> None:
    await quiet.rule()
    event = (await watcher.post(EVENTS, ORDER)).data
    alert = (await watcher.post(EVENTS, {"trigger_ref": "core.alert"})).data
    viewer = await quiet.client("viewer", "core.viewer")
    for answer in (
        await viewer.get(EVENTS),
        await viewer.get(f"{EVENTS}/{event['id']}"),
        await viewer.post(EVENTS, ORDER),
        await viewer.post(f"{EVENTS}/many", {"events": [ORDER]}),
    ):
        assert (answer.status, "permission" in answer.body["error"]) == (403, True)
    grant = {"resource": "events", "actions": ["read", "create"]}
    await quiet.callers.permission_set(
        "core.clerk", {**grant, "constraints": {"pack_refs": ["shop"]}}
    )
    clerk = await quiet.client("clerk", "core.clerk")
    assert await ids(clerk) == [event["id"]]
    assert (await clerk.get(f"{EVENTS}/{alert['id']}")).status == 404
    assert (await clerk.post(EVENTS, ORDER)).status == 201
    mixed = {"events": [ORDER, {"trigger_ref": "core.alert"}]}
    assert (await clerk.post(f"{EVENTS}/many", mixed)).status == 403
    assert len(await ids(watcher)) == 3
