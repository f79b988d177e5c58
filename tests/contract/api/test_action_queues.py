"""/actions/{ref}/queue as clients see it: who waits, and whether it goes on."""

import json
from typing import Any

from tests.contract.api.asgi import Client, Reply
from tests.contract.api.plant import Plant

ECHO = "/api/v1/actions/core.echo/queue"
SLEEP = "/api/v1/actions/core.sleep/queue"
POLICIES = "/api/v1/policies"


async def waiting(client: Client, path: str = ECHO, **query: Any) -> list[tuple[int, int]]:
    answer = await client.get(path, **query)
    assert answer.status == 200, answer.raw
    return [(each["execution"], each["position"]) for each in answer.body["items"]]


async def orders(plant: Plant, client: Client, *priorities: str) -> list[int]:
    made = [await plant.order(client, "core.echo", priority=word) for word in priorities]
    return [each["id"] for each in made]


async def grouped(plant: Plant, client: Client, *messages: str) -> list[int]:
    """Executions of core.echo under a policy that has a queue for each message, with one slot."""
    body = {
        "ref": "core.by_message",
        "scope": {"type": "action", "action_ref": "core.echo"},
        "concurrency": {"limit": 1, "parameters": ["message"]},
    }
    made = await client.post(POLICIES, body)
    assert made.status == 201, made.raw
    found = [
        await plant.order(client, "core.echo", parameters={"message": each}) for each in messages
    ]
    return [each["id"] for each in found]


async def test_those_who_wait_are_listed_in_the_order_in_which_they_will_go(
    quiet: Plant, watcher: Client
) -> None:
    assert await waiting(watcher) == []
    await quiet.limit("core.echo", 1)
    a, b, c, d = await orders(quiet, watcher, "normal", "normal", "low", "critical")
    assert await waiting(watcher) == [(a, 1), (d, 2), (b, 3), (c, 4)]
    assert await waiting(watcher, state="queued") == [(d, 2), (b, 3), (c, 4)]
    assert await waiting(watcher, state="ready") == [(a, 1)]
    assert await waiting(watcher, state="handed") == []
    assert await waiting(watcher, page=2, per_page=1) == [(d, 2)]
    assert await waiting(watcher, page=2, per_page=3) == [(c, 4)]
    page = (await watcher.get(ECHO, page=2, per_page=3)).body["pagination"]
    assert page == {
        "page": 2, "page_size": 3, "has_next": False, "has_previous": True,
        "total_items": 4, "total_pages": 2,
    }  # fmt: skip


async def test_an_entry_tells_its_state_and_its_reason(quiet: Plant, watcher: Client) -> None:
    await quiet.limit("core.echo", 1)
    await orders(quiet, watcher, "normal", "high")
    ready, queued = (await watcher.get(ECHO)).body["items"]
    assert (ready["state"], ready["reason"], ready["priority"]) == ("ready", "worker", "normal")
    assert (queued["state"], queued["reason"], queued["priority"]) == (
        "queued", "concurrency", "high",
    )  # fmt: skip
    assert queued["enqueued_at"] >= ready["enqueued_at"]
    assert "group" not in queued
    assert (await watcher.get("/api/v1/actions/core.echo/queue", state="tired")).status == 422


async def test_what_a_worker_has_no_longer_waits(plant: Plant, operator: Client) -> None:
    await plant.limit("core.sleep", 1)
    made = [
        (await plant.order(operator, "core.sleep", parameters={"seconds": 60}))["id"]
        for _ in range(3)
    ]
    await plant.in_status(operator, made[0], "running")
    assert await waiting(operator, SLEEP) == [(made[1], 1), (made[2], 2)]
    [handed] = (await operator.get(SLEEP, state="handed")).body["items"]
    assert (handed["execution"], handed["position"], handed["reason"]) == (made[0], None, None)


async def test_waiting_raises_where_ageing_is_on(quiet: Plant, watcher: Client) -> None:
    await quiet.limit("core.echo", 1)
    first, old, young = await orders(quiet, watcher, "normal", "background", "critical")
    assert await waiting(watcher, state="queued") == [(young, 2), (old, 3)]
    await watcher.put("/api/v1/admin/settings", {"ageing_seconds": 0.000001})
    assert await waiting(watcher) == [(first, 1), (old, 2), (young, 3)]
    assert await waiting(watcher, page=2, per_page=2) == [(young, 3)]


async def test_each_group_has_positions_of_its_own(quiet: Plant, watcher: Client) -> None:
    a, b, c, d = await grouped(quiet, watcher, "x", "y", "x", "y")
    items = (await watcher.get(ECHO)).body["items"]
    assert {each["execution"]: each["position"] for each in items} == {a: 1, b: 1, c: 2, d: 2}
    assert {each["execution"]: each["group"]["message"] for each in items} == {
        a: "x", b: "y", c: "x", d: "y",
    }  # fmt: skip
    assert await waiting(watcher, group=json.dumps({"message": "y"})) == [(b, 1), (d, 2)]
    pages = [await waiting(watcher, page=number, per_page=1) for number in (1, 2, 3, 4, 5)]
    assert [each for page in pages for each in page] == [
        (each["execution"], each["position"]) for each in items
    ]
    assert (await watcher.get(ECHO, group='{"message": "z"}')).status == 404
    for wrong in ("x", "[1]", "{", '"x"'):
        refused = await watcher.get(ECHO, group=wrong)
        assert (refused.status, list(refused.body["details"])) == (422, ["group"])


async def test_a_paused_queue_lets_nobody_go_until_it_is_resumed(
    plant: Plant, operator: Client
) -> None:
    paused = await operator.post(f"{ECHO}/pause")
    assert paused.data["paused"] is True
    [made] = await orders(plant, operator, "normal")
    [entry] = (await operator.get(ECHO)).body["items"]
    assert (entry["state"], entry["reason"], entry["position"]) == ("queued", "pause", 1)
    again = (await operator.post(f"{ECHO}/pause", {})).data
    assert (again["paused"], again["queue_length"], again["action_ref"]) == (True, 1, "core.echo")
    resumed = (await operator.post(f"{ECHO}/resume")).data
    assert resumed["paused"] is False
    assert (await plant.finished(operator, made))["status"] == "completed"


async def test_one_group_is_paused_and_the_others_go_on(plant: Plant, operator: Client) -> None:
    [first] = await grouped(plant, operator, "x")
    await plant.finished(operator, first)
    paused = await operator.post(f"{ECHO}/pause", {"group": {"message": "x"}})
    assert (paused.data["paused"], paused.data["group"]) == (True, {"message": "x"})
    held = await plant.order(operator, "core.echo", parameters={"message": "x"})
    free = await plant.order(operator, "core.echo", parameters={"message": "y"})
    assert (await plant.finished(operator, free["id"]))["status"] == "completed"
    assert await waiting(operator) == [(held["id"], 1)]
    query = {"group": '{"message": "x"}'}
    assert (await operator.send("POST", f"{ECHO}/resume", query=query)).data["paused"] is False
    assert (await plant.finished(operator, held["id"]))["status"] == "completed"
    for word in ("pause", "resume", "clear"):
        unknown = await operator.post(f"{ECHO}/{word}", {"group": {"message": "z"}})
        assert (unknown.status, "no queue of the group" in unknown.body["error"]) == (404, True)
        assert (await operator.post(f"{ECHO}/{word}", {"group": "x"})).status == 422


async def test_clearing_a_queue_cancels_what_waits_and_nothing_else(
    plant: Plant, operator: Client
) -> None:
    await plant.limit("core.sleep", 1)
    runs, *others = [
        (await plant.order(operator, "core.sleep", parameters={"seconds": 60}))["id"]
        for _ in range(4)
    ]
    await plant.in_status(operator, runs, "running")
    cleared = (await operator.post(f"{SLEEP}/clear")).data
    assert (cleared["cancelled"], cleared["queue_length"], cleared["active_count"]) == (3, 0, 1)
    for each in others:
        assert (await plant.finished(operator, each))["status"] == "cancelled"
    assert (await operator.get(f"/api/v1/executions/{runs}")).data["status"] == "running"
    assert (await operator.post(f"{SLEEP}/clear")).data["cancelled"] == 0
    assert await waiting(operator, SLEEP) == []


async def test_one_group_is_cleared(quiet: Plant, watcher: Client) -> None:
    _a, b, _c, d, _e = await grouped(quiet, watcher, "x", "y", "x", "y", "x")
    cleared = (await watcher.post(f"{ECHO}/clear", {"group": {"message": "x"}})).data
    assert (cleared["cancelled"], cleared["queue_length"]) == (3, 0)
    query = {"group": '{"message": "y"}'}
    assert await waiting(watcher, **query) == [(b, 1), (d, 2)]


async def test_an_action_is_named_by_its_id_too_and_must_be_there(
    quiet: Plant, watcher: Client
) -> None:
    number = (await watcher.get("/api/v1/actions/core.echo")).data["id"]
    [made] = await orders(quiet, watcher, "normal")
    assert await waiting(watcher, f"/api/v1/actions/{number}/queue") == [(made, 1)]
    for method, word in (("GET", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/clear")):
        unknown = await watcher.send(method, f"/api/v1/actions/core.none/queue{word}")
        assert unknown.status == 404


async def test_queues_are_seen_and_changed_by_those_who_may(quiet: Plant, watcher: Client) -> None:
    own = {
        "resource": "queues",
        "actions": ["read", "update"],
        "constraints": {"refs": ["core.echo"]},
    }
    await quiet.callers.permission_set("core.own_queue", own)
    elsewhere = {
        "resource": "queues",
        "actions": ["update"],
        "constraints": {"pack_refs": ["shop"]},
    }
    await quiet.callers.permission_set("core.shop_queues", elsewhere)
    keeper = await quiet.client("keeper", "core.own_queue")
    viewer = await quiet.client("viewer", "core.viewer")
    executor = await quiet.client("executor", "core.executor")
    seller = await quiet.client("seller", "core.shop_queues")
    editor = await quiet.client("editor", "core.editor")
    await orders(quiet, watcher, "normal")
    expected = [
        (keeper, "GET", ECHO, 200), (keeper, "POST", f"{ECHO}/pause", 200),
        (keeper, "GET", SLEEP, 403), (keeper, "POST", f"{SLEEP}/pause", 403),
        (viewer, "GET", ECHO, 200), (viewer, "POST", f"{ECHO}/resume", 403),
        (executor, "GET", ECHO, 403), (seller, "POST", f"{ECHO}/clear", 403),
        (editor, "POST", f"{ECHO}/resume", 200), (editor, "POST", f"{ECHO}/clear", 200),
        (Client(quiet.app), "GET", ECHO, 401), (Client(quiet.app), "POST", f"{ECHO}/clear", 401),
    ]  # fmt: skip
    for client, method, path, status in expected:
        answer: Reply = await client.send(method, path)
        assert answer.status == status, (method, path, answer.raw)
        assert status != 403 or "permission" in answer.body["error"]
