"""/admin as clients see it: executions of everybody, their order, the queues as a whole."""

from typing import Any

from tests.contract.api.asgi import Client
from tests.contract.api.plant import Plant
from tests.contract.api.test_workers import come

EXECUTIONS = "/api/v1/admin/executions"
QUEUES = "/api/v1/admin/queues"
SETTINGS = "/api/v1/admin/settings"
NAMES = {
    "max_concurrent_executions", "max_queue_length", "queue_timeout_seconds", "ageing_seconds",
}  # fmt: skip
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"max_concurrent_executions": -1}, "max_concurrent_executions"),
    ({"max_concurrent_executions": "5"}, "max_concurrent_executions"),
    ({"max_concurrent_executions": True}, "max_concurrent_executions"),
    ({"max_queue_length": 0, "ageing_seconds": 5}, "max_queue_length"),
    ({"queue_timeout_seconds": 0}, "queue_timeout_seconds"),
    ({"ageing_seconds": []}, "ageing_seconds"),
]
EMPTY = {"critical": 0, "high": 0, "normal": 0, "low": 0, "background": 0}


async def found(client: Client, path: str = f"{EXECUTIONS}/", **query: Any) -> list[int]:
    answer = await client.get(path, **query)
    assert answer.status == 200, answer.raw
    return [each["id"] for each in answer.body["items"]]


async def held(plant: Plant, client: Client, *priorities: str) -> list[int]:
    """One that has the only slot of core.echo, and others of these priorities that wait for it."""
    await plant.limit("core.echo", 1)
    orders = [await plant.order(client, "core.echo", priority=word) for word in priorities]
    return [order["id"] for order in orders]


async def test_settings_are_shown_with_what_is_in_force(quiet: Plant, watcher: Client) -> None:
    await come(quiet, "a")
    await come(quiet, "b")
    await come(quiet, "silent", ago=100)
    shown = (await watcher.get(SETTINGS)).data
    assert set(shown) == NAMES | {"effective"}
    assert all(shown[name] is None for name in NAMES)
    assert shown["effective"] == {
        "max_concurrent_executions": 8,
        "max_queue_length": 10_000,
        "queue_timeout_seconds": 3600,
        "ageing_seconds": None,
    }


async def test_a_setting_is_changed_and_brought_back(quiet: Plant, watcher: Client) -> None:
    wanted = {"max_concurrent_executions": 3, "ageing_seconds": 1.5}
    changed = await watcher.put(SETTINGS, wanted)
    assert {name: changed.data[name] for name in wanted} == wanted
    assert {name: changed.data["effective"][name] for name in wanted} == wanted
    assert "message" not in changed.body
    again = (await watcher.put(SETTINGS, {"max_concurrent_executions": None})).data
    assert again["max_concurrent_executions"] is None
    assert again["effective"]["max_concurrent_executions"] == 0
    assert again["ageing_seconds"] == 1.5
    assert (await watcher.put(SETTINGS)).data == again
    whole = await watcher.put(SETTINGS, again)
    assert (whole.data, "message" in whole.body) == (again, False)
    assert await quiet.value(int, "SELECT updated_by FROM setting") is not None


async def test_a_wrong_setting_is_refused_by_name_and_changes_nothing(watcher: Client) -> None:
    for wrong, field in WRONG:
        refused = await watcher.put(SETTINGS, wrong)
        assert (refused.status, list(refused.body["details"])) == (422, [field])
        assert field in refused.body["error"]
    shown = (await watcher.get(SETTINGS)).data
    assert all(shown[name] is None for name in NAMES)
    assert (await watcher.put(SETTINGS, [b"[1]"])).status == 422
    assert (await watcher.put(SETTINGS, [b"{"])).status == 400


async def test_a_field_that_is_no_setting_is_ignored_and_named(watcher: Client) -> None:
    answer = await watcher.put(SETTINGS, {"max_concurent": 5, "max_queue_length": 7})
    assert answer.data["max_queue_length"] == 7
    assert "max_concurent" in answer.body["message"]


async def test_a_cap_of_zero_holds_everything_until_it_is_raised(
    plant: Plant, operator: Client
) -> None:
    await operator.put(SETTINGS, {"max_concurrent_executions": 0})
    made = [await plant.order(operator, "core.echo") for _ in range(3)]
    status = (await operator.get(f"{EXECUTIONS}/queue")).data
    assert (status["queue_depth"], status["active_count"], status["max_concurrent"]) == (3, 0, 0)
    await operator.put(SETTINGS, {"max_concurrent_executions": 2})
    for each in made:
        assert (await plant.finished(operator, each["id"]))["status"] == "completed"
    status = (await operator.get(f"{EXECUTIONS}/queue")).data
    assert (status["queue_depth"], status["active_count"], status["max_concurrent"]) == (0, 0, 2)


async def test_a_raised_cap_takes_effect_at_once_where_the_api_is_a_process_of_its_own(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.start_worker()
    await quiet.start_executor()
    await watcher.put(SETTINGS, {"max_concurrent_executions": 0})
    made = await quiet.order(watcher, "core.echo")
    assert (await quiet.in_status(watcher, made["id"], "requested"))["status"] == "requested"
    await watcher.put(SETTINGS, {"max_concurrent_executions": None})
    assert (await quiet.finished(watcher, made["id"]))["status"] == "completed"


async def test_what_waits_is_counted_by_priority(quiet: Plant, watcher: Client) -> None:
    assert (await watcher.get(f"{EXECUTIONS}/queue")).data == {
        "queue_depth": 0, "active_count": 0, "max_concurrent": 0, "by_priority": EMPTY,
    }  # fmt: skip
    await held(quiet, watcher, "normal", "normal", "normal", "critical", "background")
    await quiet.order(watcher, "core.noop", priority="low")
    status = (await watcher.get(f"{EXECUTIONS}/queue")).data
    assert (status["queue_depth"], status["active_count"]) == (6, 0)
    assert status["by_priority"] == {
        "critical": 1, "high": 0, "normal": 3, "low": 1, "background": 1,
    }  # fmt: skip


async def test_what_workers_have_is_active_and_no_longer_waits(
    plant: Plant, operator: Client
) -> None:
    made = [
        await plant.order(operator, "core.sleep", parameters={"seconds": 60}, priority=word)
        for word in ("high", "normal")
    ]
    for each in made:
        await plant.in_status(operator, each["id"], "running")
    status = (await operator.get(f"{EXECUTIONS}/queue")).data
    assert status == {
        "queue_depth": 0, "active_count": 2, "max_concurrent": 10, "by_priority": EMPTY,
    }  # fmt: skip


async def test_executions_of_everybody_are_listed_and_filtered(
    quiet: Plant, watcher: Client
) -> None:
    other = await quiet.client("other", "core.executor")
    me = (await watcher.get("/auth/me")).data["id"]
    first = (await quiet.order(watcher, "core.echo", priority="high"))["id"]
    second = (await quiet.order(other, "core.noop"))["id"]
    third = (await quiet.order(other, "core.echo"))["id"]
    await watcher.post(f"/api/v1/executions/{second}/cancel")
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [third, second, first]),
        ({"status": "requested"}, [third, first]),
        ({"status": "Cancelled"}, [second]),
        ({"priority": "HIGH"}, [first]),
        ({"priority": "normal", "status": "requested"}, [third]),
        ({"user": "other"}, [third, second]),
        ({"user": me}, [first]),
        ({"user": "nobody"}, []),
        ({"user": 2**70}, []),
        ({"user": "other", "action_ref": "core.echo"}, [third]),
        ({"action_ref": "core.*", "priority": ""}, [third, second, first]),
        ({"per_page": 1}, [third]),
        ({"per_page": 1, "page": 2}, [second]),
    ]
    for query, ids in expected:
        assert await found(watcher, **query) == ids, query
        assert await found(watcher, EXECUTIONS, **query) == ids, query
    page = (await watcher.get(f"{EXECUTIONS}/", per_page=2, include_total=True)).body["pagination"]
    assert (page["has_next"], page["total_items"]) == (True, 3)
    for wrong in ({"status": "tired"}, {"priority": "urgent"}):
        assert (await watcher.get(f"{EXECUTIONS}/", **wrong)).status == 422


async def test_a_login_goes_before_an_id(quiet: Plant, watcher: Client) -> None:
    me = (await watcher.get("/auth/me")).data["id"]
    namesake = await quiet.client(str(me), "core.executor")
    await quiet.order(watcher, "core.echo")
    theirs = (await quiet.order(namesake, "core.echo"))["id"]
    assert await found(watcher, user=me) == [theirs]


async def test_a_priority_is_changed_while_an_execution_waits(
    quiet: Plant, watcher: Client
) -> None:
    _first, second, third = await held(quiet, watcher, "normal", "normal", "normal")
    changed = await watcher.put(f"{EXECUTIONS}/{third}/priority", {"priority": "Critical"})
    assert changed.data == {"id": third, "priority": "critical"}
    assert (await watcher.get(f"/api/v1/executions/{third}")).data["priority"] == "critical"
    waiting = (await watcher.get("/api/v1/actions/core.echo/queue", state="queued")).body["items"]
    assert [each["execution"] for each in waiting] == [third, second]


async def test_only_what_waits_can_be_moved_and_only_to_a_band(
    quiet: Plant, watcher: Client
) -> None:
    [only] = await held(quiet, watcher, "normal")
    path = f"{EXECUTIONS}/{only}/priority"
    for wrong in ({"priority": "urgent"}, {"priority": None}, {"priority": 1}, {}):
        assert (await watcher.put(path, wrong)).status == 422
    assert (await watcher.put(path)).status == 422
    for number in (0, 10**9, 2**70):
        answer = await watcher.put(f"{EXECUTIONS}/{number}/priority", {"priority": "low"})
        assert answer.status == 404
    await watcher.post(f"/api/v1/executions/{only}/cancel")
    assert (await watcher.put(path, {"priority": "low"})).status == 409


async def test_queues_are_listed_with_what_they_wait_for(quiet: Plant, watcher: Client) -> None:
    assert (await watcher.get(QUEUES)).body["items"] == []
    await held(quiet, watcher, "normal", "low", "high")
    await quiet.order(watcher, "core.noop")
    echo, noop = (await watcher.get(QUEUES)).body["items"]
    assert (echo["action_ref"], echo["group"], echo["paused"]) == ("core.echo", None, False)
    assert (echo["queue_length"], echo["active_count"], echo["ready_count"]) == (2, 1, 1)
    assert (echo["max_concurrent"], echo["reason"]) == (1, "concurrency")
    assert echo["policy_ref"] == "core.echo_limit"
    assert echo["oldest_enqueued_at"] is not None
    assert (noop["queue_length"], noop["ready_count"], noop["max_concurrent"]) == (0, 1, None)
    assert (noop["reason"], noop["policy_ref"], noop["oldest_enqueued_at"]) == (None, None, None)

    async def refs(**query: Any) -> list[str]:
        return [each["action_ref"] for each in (await watcher.get(QUEUES, **query)).body["items"]]

    assert await refs(waiting=True) == ["core.echo"]
    assert await refs(action_ref="core.noop") == ["core.noop"]
    assert await refs(action_ref="core.*", page=2, per_page=1) == ["core.noop"]
    assert await refs(action_ref="other.*") == []
    page = (await watcher.get(QUEUES, per_page=1)).body["pagination"]
    assert (page["total_items"], page["total_pages"], page["has_next"]) == (2, 2, True)


async def test_a_paused_queue_says_so(quiet: Plant, watcher: Client) -> None:
    await held(quiet, watcher, "normal", "normal")
    await watcher.post("/api/v1/actions/core.echo/queue/pause")
    [queue] = (await watcher.get(QUEUES)).body["items"]
    assert (queue["paused"], queue["reason"]) == (True, "pause")


async def test_the_list_of_queues_holds_what_a_caller_may_see(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.order(watcher, "core.echo")
    await quiet.order(watcher, "core.noop")
    for constraints in ({"refs": ["core.noop"]}, {"pack_refs": ["core"]}, {"pack_refs": ["shop"]}):
        [[kind, [first]]] = constraints.items()
        name = f"core.{kind}_{first.replace('.', '_')}"
        grant = {"resource": "queues", "actions": ["read"], "constraints": constraints}
        await quiet.callers.permission_set(name, grant)
    expected = {
        "core.viewer": ["core.echo", "core.noop"],
        "core.refs_core_noop": ["core.noop"],
        "core.pack_refs_core": ["core.echo", "core.noop"],
        "core.pack_refs_shop": [],
    }
    for held_set, refs in expected.items():
        client = await quiet.client(f"holder of {held_set}", held_set)
        shown = (await client.get(QUEUES)).body
        assert [each["action_ref"] for each in shown["items"]] == refs
        assert shown["pagination"]["total_items"] == len(refs)
    refused = await (await quiet.client("executor", "core.executor")).get(QUEUES)
    assert (refused.status, "permission" in refused.body["error"]) == (403, True)


async def test_the_rest_is_for_administrators_alone(quiet: Plant, watcher: Client) -> None:
    [only] = await held(quiet, watcher, "normal")
    editor = await quiet.client("editor", "core.editor")
    nobody = Client(quiet.app)
    asked = [
        ("GET", f"{EXECUTIONS}/", None),
        ("GET", EXECUTIONS, None),
        ("GET", f"{EXECUTIONS}/queue", None),
        ("PUT", f"{EXECUTIONS}/{only}/priority", {"priority": "low"}),
        ("PUT", f"{EXECUTIONS}/999/priority", {"priority": "low"}),
        ("GET", SETTINGS, None),
        ("PUT", SETTINGS, {"max_queue_length": 5}),
    ]
    for method, path, body in asked:
        refused = await editor.send(method, path, body)
        assert (refused.status, "permission" in refused.body["error"]) == (403, True), path
        assert (await nobody.send(method, path, body)).status == 401
    assert (await watcher.get(SETTINGS)).data["max_queue_length"] is None
