"""Every operation asks for the path of the contract with its verb and body, and reads what comes back."""

from typing import Any, assert_type

import httpx2
import pytest

import attune
from attune.client import (
    AsyncClient,
    Client,
    Execution,
    ExecutionStatus,
    Page,
    Rule,
    RuleSummary,
)
from attune.client.errors import BadAnswer
from tests.unit.client.conftest import Caller
from tests.unit.client.fake import (
    MOMENT,
    URL,
    FakeServer,
    action,
    data,
    execution,
    pack,
    page,
    plain,
    refusal,
    rule,
)

TRIGGER = {"id": 4, "ref": "demo.alarm", "label": "Alarm", "enabled": True, "created": MOMENT}
EVENT = {"id": 5, "trigger_ref": "demo.alarm", "payload": {"a": 1}, "created": MOMENT}
ENFORCEMENT = {
    "id": 6,
    "rule_ref": "demo.on_alarm",
    "trigger_ref": "demo.alarm",
    "status": "processed",
    "condition": "all",
    "created": MOMENT,
}
WORKER = {
    "id": 8,
    "name": "w1",
    "worker_role": "action",
    "worker_type": "local",
    "created": MOMENT,
    "load": {"running": 2, "max_concurrent_executions": 10},
    "supported_runtimes": [{"name": "python", "versions": ["3.11"]}],
}
DONE = {"success": True, "message": "gone"}

# Namespace, method, arguments, the request's verb and path, its body, the answer, what is read of it.
OPERATIONS: list[tuple[str, str, dict[str, Any], str, str, Any, httpx2.Response, str]] = [
    ("packs", "get", {"ref": "demo"}, "GET", "packs/demo", None, data(pack()), "ref"),
    ("packs", "delete", {"ref": "demo"}, "DELETE", "packs/demo", None, plain(DONE), "message"),
    ("actions", "get", {"ref": 1}, "GET", "actions/1", None, data(action()), "ref"),
    (
        "actions",
        "create",
        {"ref": "demo.x", "pack_ref": "demo", "label": "X", "entrypoint": "echo"},
        "POST",
        "actions",
        {"ref": "demo.x", "pack_ref": "demo", "label": "X", "entrypoint": "echo"},
        data(action("demo.x"), 201),
        "ref",
    ),
    (
        "actions",
        "update",
        {"ref": "demo.x", "description": None},
        "PUT",
        "actions/demo.x",
        {"description": None},
        data(action("demo.x")),
        "ref",
    ),
    ("actions", "delete", {"ref": "a.b"}, "DELETE", "actions/a.b", None, plain(DONE), "success"),
    (
        "triggers",
        "get",
        {"ref": "demo.alarm"},
        "GET",
        "triggers/demo.alarm",
        None,
        data(TRIGGER),
        "ref",
    ),
    (
        "triggers",
        "create",
        {"ref": "demo.alarm", "label": "Alarm"},
        "POST",
        "triggers",
        {"ref": "demo.alarm", "label": "Alarm"},
        data(TRIGGER, 201),
        "ref",
    ),
    (
        "triggers",
        "update",
        {"ref": "demo.alarm", "description": "Loud"},
        "PUT",
        "triggers/demo.alarm",
        {"description": {"op": "set", "value": "Loud"}},
        data(TRIGGER),
        "ref",
    ),
    (
        "triggers",
        "update",
        {"ref": "demo.alarm", "description": None, "enabled": False},
        "PUT",
        "triggers/demo.alarm",
        {"description": {"op": "clear"}, "enabled": False},
        data(TRIGGER),
        "ref",
    ),
    ("triggers", "enable", {"ref": 4}, "POST", "triggers/4/enable", None, data(TRIGGER), "ref"),
    ("triggers", "disable", {"ref": 4}, "POST", "triggers/4/disable", None, data(TRIGGER), "ref"),
    ("triggers", "delete", {"ref": 4}, "DELETE", "triggers/4", None, plain(DONE), "success"),
    (
        "rules",
        "get",
        {"ref": "demo.on_alarm"},
        "GET",
        "rules/demo.on_alarm",
        None,
        data(rule()),
        "ref",
    ),
    ("rules", "enable", {"ref": "r.x"}, "POST", "rules/r.x/enable", None, data(rule()), "enabled"),
    ("rules", "disable", {"ref": "r.x"}, "POST", "rules/r.x/disable", None, data(rule()), "ref"),
    (
        "rules",
        "update",
        {"ref": "r.x", "label": "L"},
        "PUT",
        "rules/r.x",
        {"label": "L"},
        data(rule()),
        "ref",
    ),
    ("rules", "delete", {"ref": "r.x"}, "DELETE", "rules/r.x", None, plain(DONE), "success"),
    (
        "rules",
        "create",
        {"ref": "d.x", "pack_ref": "d", "label": "X", "trigger_ref": "d.t", "action_ref": "d.a"},
        "POST",
        "rules",
        {"ref": "d.x", "pack_ref": "d", "label": "X", "trigger_ref": "d.t", "action_ref": "d.a"},
        data(rule(), 201),
        "ref",
    ),
    (
        "events",
        "emit",
        {"trigger_ref": "demo.alarm", "payload": {"a": 1}, "trigger_instance_id": "rule_3"},
        "POST",
        "events",
        {"trigger_ref": "demo.alarm", "payload": {"a": 1}, "trigger_instance_id": "rule_3"},
        data(EVENT, 201),
        "payload",
    ),
    ("events", "get", {"ref": 5}, "GET", "events/5", None, data(EVENT), "trigger_ref"),
    ("enforcements", "get", {"ref": 6}, "GET", "enforcements/6", None, data(ENFORCEMENT), "status"),
    ("workers", "get", {"ref": 8}, "GET", "workers/8", None, plain(WORKER), "name"),
    (
        "workers",
        "cordon",
        {"ref": 8, "reason": "repair"},
        "POST",
        "workers/8/cordon",
        {"reason": "repair"},
        plain(WORKER),
        "name",
    ),
    ("workers", "uncordon", {"ref": 8}, "POST", "workers/8/uncordon", {}, plain(WORKER), "name"),
    ("executions", "get", {"ref": 7}, "GET", "executions/7", None, data(execution()), "status"),
    (
        "executions",
        "cancel",
        {"id_": 7},
        "POST",
        "executions/7/cancel",
        None,
        data(execution()),
        "id",
    ),
    (
        "executions",
        "execute",
        {"action_ref": "core.echo", "parameters": {"message": "hi"}, "priority": "high"},
        "POST",
        "executions/execute",
        {"action_ref": "core.echo", "parameters": {"message": "hi"}, "priority": "high"},
        data(execution(), 201),
        "id",
    ),
]


@pytest.mark.parametrize(
    ("space", "method", "arguments", "verb", "path", "body", "answer", "read"),
    OPERATIONS,
    ids=[f"{each[0]}.{each[1]}" for each in OPERATIONS],
)
async def test_an_operation_sends_what_the_contract_says_and_reads_the_answer(
    caller: Caller,
    server: FakeServer,
    space: str,
    method: str,
    arguments: dict[str, Any],
    verb: str,
    path: str,
    body: Any,
    answer: httpx2.Response,
    read: str,
) -> None:
    server.on(verb, f"/api/v1/{path}", answer)
    found = await caller.call(getattr(getattr(caller.client, space), method), **arguments)
    [request] = server.requests
    assert request.headers["authorization"] == "Bearer token"
    assert (
        request.content == b"" if body is None else server.bodies(verb, f"/api/v1/{path}") == [body]
    )
    whole = answer.json()
    assert getattr(found, read) == whole.get("data", whole)[read]


async def test_many_executions_and_events_are_one_request_each(
    caller: Caller, server: FakeServer
) -> None:
    server.on("POST", "/api/v1/executions/execute-many", data([execution(1), execution(2)], 201))
    server.on("POST", "/api/v1/events/many", data([EVENT], 201))
    wanted = [{"action_ref": "core.echo", "parameters": {"n": n}} for n in range(2)]
    made = await caller.call(caller.client.executions.execute_many, wanted)
    assert [each.id for each in made] == [1, 2]
    assert server.bodies("POST", "/api/v1/executions/execute-many") == [{"executions": wanted}]
    told = await caller.call(caller.client.events.emit_many, [{"trigger_ref": "demo.alarm"}])
    assert [each.id for each in told] == [5]
    sent = {"trigger_ref": "demo.alarm", "payload": {}}
    assert server.bodies("POST", "/api/v1/events/many") == [{"events": [sent]}]


async def test_a_list_takes_filters_and_tells_of_its_pages(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", "/api/v1/executions", page([execution(1)], more=True))
    found = await caller.call(
        caller.client.executions.list,
        status=ExecutionStatus.FAILED,
        action_ref="core.*",
        top_level_only=True,
        page_size=10,
    )
    assert [each.id for each in found] == [1]
    assert found.pagination.has_next
    assert found.pagination.total_items is None
    assert dict(server.requests[0].url.params) == {
        "status": "failed",
        "action_ref": "core.*",
        "top_level_only": "true",
        "page_size": "10",
    }


async def test_iterating_asks_for_a_page_only_when_it_is_needed(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", "/api/v1/rules", page([rule("a.a", 1)], more=True), page([rule("a.b", 2)], 2))
    found = await caller.all(caller.client.rules.iterate())
    assert [each.ref for each in found] == ["a.a", "a.b"]
    asked = [dict(each.url.params) for each in server.requests]
    assert [each["page"] for each in asked] == ["1", "2"]


async def test_what_new_ones_push_to_the_next_page_is_not_told_of_twice(
    caller: Caller, server: FakeServer
) -> None:
    first = page([execution(9), execution(8)], more=True)
    server.on("GET", "/api/v1/executions", first, page([execution(8), execution(7)], 2))
    found = await caller.all(caller.client.executions.iterate())
    assert [each.id for each in found] == [9, 8, 7]


def test_a_page_that_nobody_wants_is_not_asked_for(server: FakeServer) -> None:
    server.on("GET", "/api/v1/rules", page([rule("a.a", 1)], more=True))
    client = Client(URL, http=httpx2.Client(transport=httpx2.MockTransport(server)))
    assert next(iter(client.rules.iterate())).ref == "a.a"
    assert len(server.requests) == 1


async def test_a_ref_cannot_lead_to_another_path(caller: Caller, server: FakeServer) -> None:
    server.on("GET", "/api/v1/rules/../packs", data(rule()))
    await caller.call(caller.client.rules.get, "../packs")
    assert server.requests[0].url.raw_path == b"/api/v1/rules/..%2Fpacks"


async def test_an_answer_that_is_not_attunes_is_told_as_that(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", "/api/v1/rules/1", httpx2.Response(200, text="<html>"))
    with pytest.raises(BadAnswer, match="does not speak this API.*GET /api/v1/rules/1"):
        await caller.call(caller.client.rules.get, 1)


async def test_a_refusal_without_a_sentence_gets_one(caller: Caller, server: FakeServer) -> None:
    server.on("GET", "/api/v1/rules/1", httpx2.Response(502, text="<html>"))
    with pytest.raises(attune.client.ServerFault, match="The server answered 502 Bad Gateway"):
        await caller.call(caller.client.rules.get, 1)


def test_an_execution_knows_how_it_ended(server: FakeServer) -> None:
    result = {"data": {"x": 1}, "error": "broke", "stdout": "out"}
    server.on("GET", "/api/v1/executions/7", data(execution(status="failed", result=result)))
    client = Client(URL, http=httpx2.Client(transport=httpx2.MockTransport(server)))
    found = client.executions.get(7)
    assert (found.is_finished, found.succeeded) == (True, False)
    assert (found.data, found.error, found.output("stdout")) == ({"x": 1}, "broke", "out")
    assert found.output("stderr") == ""


def test_the_types_are_those_of_each_client(server: FakeServer) -> None:
    """Half of this test is the type checker's: `assert_type` must agree with what happens."""
    server.on("GET", "/api/v1/rules/1", data(rule()))
    server.on("GET", "/api/v1/rules", page([rule()]))
    server.on("GET", "/api/v1/executions/7", data(execution()))
    client = Client(URL, http=httpx2.Client(transport=httpx2.MockTransport(server)))
    assert isinstance(assert_type(client.rules.get(1), Rule), Rule)
    assert isinstance(assert_type(client.rules.list(), Page[RuleSummary]), Page)
    assert isinstance(assert_type(client.executions.get(7), Execution), Execution)


async def test_the_awaited_types_are_those_of_the_other(server: FakeServer) -> None:
    server.on("GET", "/api/v1/rules/1", data(rule()))
    server.on("GET", "/api/v1/rules", page([rule()]))
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(server))
    async with AsyncClient(URL, http=http) as client:
        assert isinstance(assert_type(await client.rules.get(1), Rule), Rule)
        async for each in client.rules.iterate():
            assert isinstance(assert_type(each, RuleSummary), RuleSummary)


async def test_an_unknown_path_is_a_refusal_like_any_other(caller: Caller) -> None:
    with pytest.raises(attune.client.NotFound) as caught:
        await caller.call(caller.client.rules.get, "no.such")
    assert caught.value.sentence == "No such path."
    assert refusal(404, "No such path.").json() == {"error": caught.value.sentence}
