"""/executions as clients see it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from attune.pipeline.executions.model import ExecutionSummary
from attune.store.database import Tx
from attune.store.postgresql_tx import PostgreSQLTx
from attune.store.sqlite_tx import SQLiteTx
from tests.contract.api.asgi import Client
from tests.contract.api.plant import EXECUTIONS, Plant

SUMMARY_KEYS = {
    "action_ref", "created", "enforcement", "id", "original_execution", "parent", "rule_ref",
    "started_at", "status", "trigger_ref", "updated", "workflow_task",
}  # fmt: skip
KEYS = SUMMARY_KEYS | {
    "action", "config", "executor", "permission_set_refs", "result", "worker", "worker_affinity",
    "worker_selector", "worker_tolerations", "attempt", "priority", "timeout_seconds", "trace_tag",
    "reason", "max_retries", "retry",
}  # fmt: skip
HUGE = 9_223_372_036_854_775_808


async def ids(client: Client, **query: Any) -> list[int]:
    return [each["id"] for each in (await client.get(EXECUTIONS, **query)).body["items"]]


async def test_an_action_is_executed_to_its_end(plant: Plant, operator: Client) -> None:
    asked = {"parameters": {"message": "hi"}, "trace_tag": "t-1", "priority": "HIGH"}
    made = await plant.order(operator, "core.echo", **asked, timeout_seconds=30)
    assert set(made) >= KEYS
    assert (made["status"], made["result"], made["attempt"]) == ("requested", None, 1)
    assert (made["priority"], made["trace_tag"], made["timeout_seconds"]) == ("high", "t-1", 30)
    ended = await plant.finished(operator, made["id"])
    assert (ended["status"], ended["config"]) == ("completed", {"message": "hi"})
    result = ended["result"]
    assert set(result) >= {"exit_code", "duration_ms", "succeeded", "stdout", "stderr", "data"}
    assert (result["succeeded"], result["stdout"].strip()) == (True, "hi")
    assert ended["worker"] is not None
    assert ended["created"] <= ended["started_at"] <= ended["updated"]
    [listed] = (await operator.get(EXECUTIONS)).body["items"]
    assert set(listed) >= SUMMARY_KEYS
    assert not {"config", "result"} & set(listed)


async def test_secret_parameters_are_never_shown(plant: Plant, operator: Client) -> None:
    schema = {"user": {"type": "string"}, "password": {"type": "string", "secret": True}}
    ref = await plant.inline(operator, "login", "true", param_schema=schema)
    given = {"user": "ann", "password": "hunter2"}
    made = await plant.order(operator, ref, parameters=given)
    shown = {"user": "ann", "password": "[redacted]"}
    assert made["config"] == shown
    await operator.put(f"/api/v1/actions/{ref}", {"param_schema": {}})
    ended = await plant.finished(operator, made["id"])
    assert ended["config"] == shown
    many = {"executions": [{"action_ref": ref, "parameters": {"x": 1}}]}
    assert (await operator.post(f"{EXECUTIONS}/execute-many", many)).data[0]["config"] == {"x": 1}


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"action_ref": "core.nothing"}, 404, "core.nothing"),
    ({}, 422, "action_ref"),
    ({"action_ref": ""}, 422, "action_ref"),
    ({"action_ref": "core.http_request"}, 422, "parameters.url"),
    ({"action_ref": "core.sleep", "parameters": {"seconds": "soon"}}, 422, "parameters.seconds"),
    ({"action_ref": "core.echo", "parameters": []}, 422, "parameters"),
    ({"action_ref": "core.echo", "priority": "urgent"}, 422, "priority"),
    ({"action_ref": "core.echo", "timeout_seconds": 0}, 422, "timeout_seconds"),
    ({"action_ref": "core.echo", "timeout_seconds": -1}, 422, "timeout_seconds"),
    ({"action_ref": "core.echo", "env_vars": {"A=B": "x"}}, 422, "env_vars"),
    ({"action_ref": "core.echo", "env_vars": {"A": 1}}, 422, "env_vars"),
    ({"action_ref": "core.echo", "idempotency_key": ""}, 422, "idempotency_key"),
    ({"action_ref": "core.echo", "idempotency_key": "k" * 256}, 422, "idempotency_key"),
    ({"action_ref": "core.echo", "trace_tag": "\0"}, 422, "trace_tag"),
    ({"action_ref": "core.echo", "parameters": {"message": "\0"}}, 422, "parameters.message"),
    ({"action_ref": "core.echo", "permission_set_refs": ["no.such"]}, 422, "permission_set_refs"),
    ({"action_ref": "core.echo", "worker_selector": ["x"]}, 422, "worker_selector"),
    ({"action_ref": "core.echo", "max_retries": -1}, 422, "max_retries"),
    ({"action_ref": "core.echo", "max_retries": 1001}, 422, "max_retries"),
    ({"action_ref": "core.echo", "retry": []}, 422, "retry"),
    ({"action_ref": "core.echo", "retry": {"delay": -1}}, 422, "retry.delay"),
    ({"action_ref": "core.echo", "retry": {"backof": "linear"}}, 422, "retry.backof"),
    ({"action_ref": "core.echo", "retry": {"matching": ["["]}}, 422, "retry.matching"),
]  # fmt: skip


async def test_a_bad_request_names_its_field_and_makes_nothing(
    quiet: Plant, watcher: Client
) -> None:
    for body, status, word in REFUSED:
        answer = await watcher.post(f"{EXECUTIONS}/execute", body)
        assert (answer.status, word in answer.body["error"]) == (status, True), (body, answer.raw)
        many = {"executions": [{"action_ref": "core.echo"}, body]}
        answer = await watcher.post(f"{EXECUTIONS}/execute-many", many)
        assert (answer.status, word in answer.body["error"]) == (status, True), (body, answer.raw)
        if status == 422:
            place = next(iter(answer.body["details"])).replace("[1]", ".1")
            assert place.startswith(f"executions.1.{word}"), answer.raw
    assert await ids(watcher) == []
    too_many = {"executions": [{"action_ref": "core.echo"}] * 10_001}
    answer = await watcher.post(f"{EXECUTIONS}/execute-many", too_many)
    assert (answer.status, list(answer.body["details"])) == (422, ["executions"])
    assert (await watcher.post(f"{EXECUTIONS}/execute", b"{")).status == 400
    assert (await watcher.post(f"{EXECUTIONS}/execute-many", {"executions": []})).data == []
    assert await ids(watcher) == []


async def test_unknown_and_huge_ids_are_404(quiet: Plant, watcher: Client) -> None:
    for number in (1, 0, -1, HUGE, 10**40):
        for path in (f"{EXECUTIONS}/{number}", f"{EXECUTIONS}/{number}/logs/stdout"):
            assert (await watcher.get(path)).status == 404, path
        assert (await watcher.post(f"{EXECUTIONS}/{number}/cancel")).status == 404
        assert (await watcher.get(f"{EXECUTIONS}/stream", execution_id=number)).status == 404
    assert (await watcher.get(f"{EXECUTIONS}/abc")).status == 422
    assert (await watcher.get(EXECUTIONS, parent=HUGE)).status == 422


async def test_an_execution_shows_its_retries_as_resolved(quiet: Plant, watcher: Client) -> None:
    usual = {"delay": 5, "on": ["timeout"]}
    ref = await quiet.inline(watcher, "flaky", "exit 1", max_retries=2, retry=usual)
    full = {
        "delay": 5, "backoff": "constant", "max_delay": None, "jitter": 0, "on": ["timeout"],
        "exit_codes": [], "matching": [], "queue_place": "keep",
    }  # fmt: skip
    everything = ["failed", "timeout", "not_started", "worker_lost"]
    own = {"delay": 1, "queue_place": "tail"}
    for asked, expected in (
        ({}, (2, full)),
        ({"max_retries": 7}, (7, full)),
        ({"retry": own}, (2, {**full, **own, "on": everything})),
        ({"max_retries": 0}, (0, None)),
        ({"max_retries": None, "retry": None}, (2, full)),
    ):
        made = await quiet.order(watcher, ref, **asked)
        assert (made["max_retries"], made["retry"]) == expected
        shown = (await watcher.get(f"{EXECUTIONS}/{made['id']}")).data
        assert (shown["max_retries"], shown["retry"]) == expected
    many = {"executions": [{"action_ref": ref}, {"action_ref": "core.echo"}]}
    both = (await watcher.post(f"{EXECUTIONS}/execute-many", many)).data
    assert [each["max_retries"] for each in both] == [2, 0]


async def test_an_idempotency_key_makes_one_execution(quiet: Plant, watcher: Client) -> None:
    body = {"action_ref": "core.echo", "idempotency_key": "once", "parameters": {"message": "a"}}
    answers = await asyncio.gather(*(watcher.post(f"{EXECUTIONS}/execute", body) for _ in range(5)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.data["id"] for answer in answers}) == 1
    other = {**body, "parameters": {"message": "b"}}
    assert (await watcher.post(f"{EXECUTIONS}/execute", other)).data["config"] == {"message": "a"}
    assert len(await ids(watcher)) == 1


async def test_a_key_never_shows_somebody_elses_execution(quiet: Plant, watcher: Client) -> None:
    await quiet.order(watcher, "core.echo", idempotency_key="mine")
    await quiet.callers.permission_set(
        "core.runner", {"resource": "actions", "actions": ["execute"]}
    )
    stranger = await quiet.client("stranger", "core.runner")
    body = {"action_ref": "core.echo", "idempotency_key": "mine"}
    assert (await stranger.post(f"{EXECUTIONS}/execute", body)).status == 409
    own = {**body, "idempotency_key": "own"}
    first = (await stranger.post(f"{EXECUTIONS}/execute", own)).data["id"]
    assert (await stranger.post(f"{EXECUTIONS}/execute", own)).data["id"] == first


async def test_many_are_made_in_their_order_or_not_at_all(quiet: Plant, watcher: Client) -> None:
    wanted = [{"action_ref": "core.echo", "parameters": {"message": str(n)}} for n in range(1200)]
    answer = await watcher.post(f"{EXECUTIONS}/execute-many", {"executions": wanted})
    assert answer.status == 201
    assert [each["config"]["message"] for each in answer.data] == [str(n) for n in range(1200)]
    stats = (await watcher.get(f"{EXECUTIONS}/stats")).data
    assert (stats["total"], stats["pending"]) == (1200, 1200)
    broken = [*wanted[:10], {"action_ref": "core.nothing"}]
    refused = await watcher.post(f"{EXECUTIONS}/execute-many", {"executions": broken})
    assert refused.status == 404
    assert (await watcher.get(EXECUTIONS, include_total="True")).body["pagination"][
        "total_items"
    ] == 1200


async def test_pages_are_newest_first_and_counted_only_when_asked(
    quiet: Plant, watcher: Client
) -> None:
    wanted = {"executions": [{"action_ref": "core.echo"}] * 7}
    made = [each["id"] for each in (await watcher.post(f"{EXECUTIONS}/execute-many", wanted)).data]
    newest = made[::-1]
    first = (await watcher.get(EXECUTIONS, per_page=3)).body
    assert [each["id"] for each in first["items"]] == newest[:3]
    assert first["pagination"] == {
        "page": 1, "page_size": 3, "has_next": True, "has_previous": False, "next_before": newest[2],
    }  # fmt: skip
    last = (await watcher.get(EXECUTIONS, limit=3, page=3, include_total=True)).body
    assert [each["id"] for each in last["items"]] == newest[6:]
    assert last["pagination"] == {
        "page": 3, "page_size": 3, "has_next": False, "has_previous": True,
        "total_items": 7, "total_pages": 3,
    }  # fmt: skip
    assert await ids(watcher, before=newest[2], page_size=3) == newest[3:6]
    assert await ids(watcher, page=10**12) == []


async def test_filters_find_exactly_what_they_name(plant: Plant, operator: Client) -> None:
    await plant.rule(action_params={"message": "{{ event.payload.text }}"})
    fails = await plant.inline(operator, "fails", "echo 100%_sure >&2; exit 3")
    failed = await plant.order(operator, fails)
    echoed = await plant.order(operator, "core.echo", parameters={"message": 'say "Hi" 50%'})
    body = {"trigger_ref": "shop.order", "payload": {"text": "shipped"}}
    event = (await operator.post("/api/v1/events", body)).data
    await plant.over()
    [enforcement] = (await operator.get("/api/v1/enforcements", event=event["id"])).body["items"]
    [ruled] = await ids(operator, enforcement=enforcement["id"])
    me = echoed["executor"]
    everything = [ruled, echoed["id"], failed["id"]]
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({}, everything),
        ({"status": "failed"}, [failed["id"]]),
        ({"status": "Completed"}, [ruled, echoed["id"]]),
        ({"status": "running"}, []),
        ({"action_ref": "core.echo"}, [ruled, echoed["id"]]),
        ({"action_ref": "core.*"}, everything),
        ({"action_ref": "cor.*"}, []),
        ({"pack_name": "core"}, everything),
        ({"pack_name": "shop"}, []),
        ({"rule_ref": "shop.on_order"}, [ruled]),
        ({"rule_ref": "shop.*"}, [ruled]),
        ({"rule_ref": "shop"}, []),
        ({"trigger_ref": "shop.order"}, [ruled]),
        ({"trigger_ref": "shop.*", "status": "completed"}, [ruled]),
        ({"trigger_ref": "core.*"}, []),
        ({"executor": me}, [echoed["id"], failed["id"]]),
        ({"parent": ruled}, []),
        ({"top_level_only": "TRUE"}, everything),
        ({"result_contains": "shipped"}, [ruled]),
        ({"result_contains": 'Say "hi" 50%'}, [echoed["id"]]),
        ({"result_contains": "100%_SURE"}, [failed["id"]]),
        ({"result_contains": "100_sure"}, []),
        ({"enforcement": enforcement["id"], "pack_name": "core"}, [ruled]),
        ({"status": "", "rule_ref": "", "unknown": "x"}, everything),
    ]
    for query, found in expected:
        assert await ids(operator, **query) == found, query
        counted = (await operator.get(EXECUTIONS, **query, include_total="true")).body
        assert counted["pagination"]["total_items"] == len(found), query
    assert await ids_at(operator, f"{EXECUTIONS}/status/failed") == [failed["id"]]
    assert await ids_at(operator, f"{EXECUTIONS}/enforcement/{enforcement['id']}") == [ruled]
    assert (await operator.get(f"{EXECUTIONS}/status/lost")).status == 400
    unknown = await operator.get(EXECUTIONS, status="lost")
    assert (unknown.status, list(unknown.body["details"])) == (422, ["status"])


async def ids_at(client: Client, path: str) -> list[int]:
    return [each["id"] for each in (await client.get(path)).body["items"]]


async def test_what_lives_is_found_by_its_status_and_counted(
    plant: Plant, operator: Client
) -> None:
    await plant.limit("core.sleep", 1)
    running = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
    waiting = await plant.order(operator, "core.sleep", parameters={"seconds": 60})
    await plant.in_status(operator, running["id"], "running")
    assert await ids(operator, status="running") == [running["id"]]
    assert await ids(operator, status="requested") == [waiting["id"]]
    shown = (await operator.get(f"{EXECUTIONS}/{waiting['id']}")).data
    assert shown["reason"] == "concurrency"
    assert (await operator.get(f"{EXECUTIONS}/{running['id']}")).data["reason"] is None
    stats = (await operator.get(f"{EXECUTIONS}/stats")).data
    assert (stats["total"], stats["running"], stats["pending"]) == (2, 1, 1)
    queue = (await operator.get("/api/v1/actions/core.sleep/queue-stats")).data
    assert (queue["queue_length"], queue["active_count"], queue["max_concurrent"]) == (1, 1, 1)
    assert (queue["total_enqueued"], queue["total_completed"]) == (2, 0)
    assert queue["oldest_enqueued_at"] is not None
    for each in (waiting, running):
        assert (await operator.post(f"{EXECUTIONS}/{each['id']}/cancel")).status == 200
        assert (await plant.finished(operator, each["id"]))["status"] == "cancelled"
    stats = (await operator.get(f"{EXECUTIONS}/stats")).data
    assert stats == {
        "total": 2, "cancelled": 2, "completed": 0, "failed": 0, "running": 0, "pending": 0,
        "timeout": 0, "abandoned": 0,
    }  # fmt: skip


async def test_cancelling_twice_is_fine_until_it_has_ended(plant: Plant, operator: Client) -> None:
    ref = await plant.inline(operator, "stubborn", "trap '' TERM; sleep 60")
    made = await plant.order(operator, ref)
    await plant.in_status(operator, made["id"], "running")
    path = f"{EXECUTIONS}/{made['id']}/cancel"
    first, second = await operator.post(path), await operator.post(path)
    assert (first.status, first.data["status"]) == (200, "canceling")
    assert (second.status, second.data["status"]) == (200, "canceling")
    assert (await plant.finished(operator, made["id"]))["status"] == "cancelled"
    late = await operator.post(path)
    assert (late.status, "cancelled already" in late.body["error"]) == (409, True)


async def test_an_unused_action_has_an_empty_queue(quiet: Plant, watcher: Client) -> None:
    queue = (await watcher.get("/api/v1/actions/core.echo/queue-stats")).data
    assert queue["last_updated"] is not None
    assert (queue["queue_length"], queue["max_concurrent"]) == (0, 0)
    assert (queue["total_enqueued"], queue["oldest_enqueued_at"]) == (0, None)
    assert (await watcher.get("/api/v1/actions/core.nothing/queue-stats")).status == 404


async def test_the_statistics_of_a_queue_are_for_those_who_may_see_queues(quiet: Plant) -> None:
    path = "/api/v1/actions/core.echo/queue-stats"
    for permission_set, status in (("core.viewer", 200), ("core.executor", 403)):
        client = await quiet.client(permission_set.replace(".", "_"), permission_set)
        assert (await client.get(path)).status == status


async def test_running_needs_a_right_and_gives_none_away(quiet: Plant, watcher: Client) -> None:
    body = {"action_ref": "core.echo"}
    viewer = await quiet.client("viewer", "core.viewer")
    refused = await viewer.post(f"{EXECUTIONS}/execute", body)
    assert (refused.status, "permission" in refused.body["error"]) == (403, True)
    many = await viewer.post(f"{EXECUTIONS}/execute-many", {"executions": [body]})
    assert many.status == 403
    runner = await quiet.client("runner", "core.executor")
    gift = {**body, "permission_set_refs": ["core.admin"]}
    assert (await runner.post(f"{EXECUTIONS}/execute", gift)).status == 403
    nested = await runner.post(f"{EXECUTIONS}/execute-many", {"executions": [body, gift]})
    assert (nested.status, "executions.1" in nested.body["error"]) == (403, True)
    fair = {**body, "permission_set_refs": ["core.executor", "standard"]}
    assert (await runner.post(f"{EXECUTIONS}/execute", fair)).status == 201
    assert len(await ids(watcher)) == 1


async def test_everybody_sees_and_stops_his_own_and_nobody_elses(
    quiet: Plant, watcher: Client
) -> None:
    await quiet.callers.permission_set(
        "core.runner", {"resource": "actions", "actions": ["execute"]}
    )
    ann, bob = await quiet.client("ann", "core.runner"), await quiet.client("bob", "core.runner")
    viewer = await quiet.client("viewer", "core.viewer")
    made = (await quiet.order(ann, "core.echo"))["id"]
    assert (await ids(ann), await ids(bob), await ids(viewer)) == ([made], [], [made])
    assert (await ann.get(f"{EXECUTIONS}/{made}")).status == 200
    assert (await bob.get(f"{EXECUTIONS}/{made}")).status == 404
    assert (await bob.get(f"{EXECUTIONS}/stats")).data["total"] == 0
    assert (await bob.get(f"{EXECUTIONS}/{made}/logs/stdout")).status == 404
    assert (await bob.post(f"{EXECUTIONS}/{made}/cancel")).status == 404
    refused = await viewer.post(f"{EXECUTIONS}/{made}/cancel")
    assert (refused.status, "permission" in refused.body["error"]) == (403, True)
    assert (await ann.post(f"{EXECUTIONS}/{made}/cancel")).data["status"] == "cancelled"


async def test_grants_may_be_for_a_pack_alone(quiet: Plant, watcher: Client) -> None:
    await quiet.callers.permission_set(
        "core.of_shop",
        {"resource": "executions", "actions": ["read"], "constraints": {"pack_refs": ["shop"]}},
    )
    await quiet.rule()
    shop = {"ref": "shop.a.b", "pack_ref": "shop", "label": "A", "entrypoint": "true"}
    assert (await watcher.post("/api/v1/actions", shop)).status == 201
    mine = (await quiet.order(watcher, "shop.a.b"))["id"]
    other = (await quiet.order(watcher, "core.echo"))["id"]
    clerk = await quiet.client("clerk", "core.of_shop")
    assert await ids(clerk) == [mine]
    assert (await clerk.get(f"{EXECUTIONS}/{mine}")).status == 200
    assert (await clerk.get(f"{EXECUTIONS}/{other}")).status == 404


async def test_an_execution_asks_for_children_and_sees_what_its_sets_allow(
    quiet: Plant, watcher: Client
) -> None:
    below = {"resource": "executions", "actions": ["read"]}
    await quiet.callers.permission_set(
        "core.family",
        {"resource": "actions", "actions": ["execute"]},
        {**below, "constraints": {"execution_scope": "descendants"}},
    )
    parent = await quiet.order(watcher, "core.echo")
    other = await quiet.order(watcher, "core.echo")
    program = quiet.running_as(parent["id"], parent["executor"], "core.family")
    child = await quiet.order(program, "core.echo")
    assert (child["parent"], child["executor"]) == (parent["id"], parent["executor"])
    grandchild = await quiet.order(
        quiet.running_as(child["id"], parent["executor"], "core.family"), "core.echo"
    )
    assert await ids(program) == [grandchild["id"], child["id"], parent["id"]]
    assert await ids(watcher, parent=parent["id"]) == [child["id"]]
    assert await ids(watcher, top_level_only=True) == [other["id"], parent["id"]]
    assert (await program.get(f"{EXECUTIONS}/{other['id']}")).status == 404
    assert (await program.post(f"{EXECUTIONS}/{parent['id']}/cancel")).status == 403
    bare = quiet.running_as(parent["id"], parent["executor"])
    assert await ids(bare) == [parent["id"]]
    assert (await bare.post(f"{EXECUTIONS}/execute", {"action_ref": "core.echo"})).status == 403


class _Step(msgspec.Struct):
    """A line of SQLite's plan."""

    id: int
    parent: int
    notused: int
    detail: str


async def plan(tx: Tx, sql: str, values: dict[str, Any]) -> str:
    if tx.sqlite:
        steps = await tx.all(_Step, f"EXPLAIN QUERY PLAN {sql}", **values)
        return "\n".join(step.detail for step in steps)
    # The tables of a test are so small that reading them whole would win.
    await tx.execute("SET LOCAL enable_seqscan = off")
    await tx.execute("SET LOCAL enable_bitmapscan = off")
    return "\n".join(await tx.all(str, f"EXPLAIN {sql}", **values))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What is asked of the database, for rows of executions."""
    found: list[tuple[str, dict[str, Any]]] = []

    def hearing(fetch: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def heard(self: Tx, kind: Any, sql: str, /, **values: Any) -> Any:
            if kind is ExecutionSummary:
                found.append((sql, values))
            return await fetch(self, kind, sql, **values)

        return heard

    for adapter in (SQLiteTx, PostgreSQLTx):
        monkeypatch.setattr(adapter, "all", hearing(adapter.all))
    return found


async def test_f42_a_page_is_walked_through_an_index_and_never_sorted(
    quiet: Plant, watcher: Client, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    await quiet.order(watcher, "core.echo")
    by: list[tuple[dict[str, Any], str]] = [
        ({}, ""),
        ({"before": 7}, ""),
        ({"page": 3}, ""),
        ({"status": "failed"}, "ix_execution_failure"),
        ({"status": "requested"}, ""),
        ({"action_ref": "core.echo"}, "ix_execution_action_ref_id"),
        ({"pack_name": "core"}, "ix_execution_action_ref_id"),
        ({"rule_ref": "shop.on_order"}, "ix_execution_rule_ref"),
        ({"enforcement": 1}, "ix_execution_enforcement"),
        ({"parent": 1}, "ix_execution_parent"),
    ]
    for query, index in by:
        asked.clear()
        await watcher.get(EXECUTIONS, **query)
        [(sql, values)] = asked
        found = await quiet.database.run(plan, sql, values)
        assert index in found, (query, found)
        assert not any(word in found for word in ("TEMP B-TREE", "Sort", "Seq Scan")), found


async def test_f42_lists_read_neither_parameters_nor_results(
    quiet: Plant, watcher: Client, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    await quiet.order(watcher, "core.echo", parameters={"message": "x"})
    for status in ("", "requested", "failed", "completed"):
        await watcher.get(EXECUTIONS, status=status, pack_name="core", top_level_only=True)
    assert len(asked) >= 4  # what turns out to need a snapshot is asked once more
    for sql, _ in asked:
        assert not any(word in sql for word in ("config", "result", "env_vars", "*"))
