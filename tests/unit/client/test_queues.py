"""`client.queues` and `client.settings` with either client."""

from typing import Any

import httpx2
import pytest

import attune.client
from tests.unit.client.conftest import Caller
from tests.unit.client.fake import MOMENT, FakeServer, data, page, refusal

QUEUES = "/api/v1/admin/queues"
ENTRIES = "/api/v1/actions/core.echo/queue"
SETTINGS = {"max_concurrent_executions": 5, "effective": {"max_concurrent_executions": 5}}
STATE = {"action_ref": "core.echo", "paused": True, "queue_length": 2, "active_count": 1}
WHY = {"waiting": True, "position": 2, "first_blocker": "pause", "blockers": [{"gate": "pause"}]}
STATUS = {"queue_depth": 3, "active_count": 1, "max_concurrent": 10, "by_priority": {"high": 3}}

# Namespace, method, arguments, the request's verb and path, its body, the answer, what is read of it.
OPERATIONS: list[tuple[str, str, dict[str, Any], str, str, Any, httpx2.Response, str]] = [
    (
        "queues",
        "pause",
        {"ref": "core.echo"},
        "POST",
        f"{ENTRIES}/pause",
        {},
        data(STATE),
        "paused",
    ),
    (
        "queues",
        "resume",
        {"ref": "core.echo", "group": {"host": "a"}},
        "POST",
        f"{ENTRIES}/resume",
        {"group": {"host": "a"}},
        data(STATE),
        "queue_length",
    ),
    (
        "queues",
        "clear",
        {"ref": "core.echo"},
        "POST",
        f"{ENTRIES}/clear",
        {},
        data({**STATE, "cancelled": 4}),
        "cancelled",
    ),
    (
        "queues",
        "reprioritize",
        {"id_": 7, "priority": "high"},
        "PUT",
        "/api/v1/admin/executions/7/priority",
        {"priority": "high"},
        data({"id": 7, "priority": "high"}),
        "priority",
    ),
    ("queues", "why", {"id_": 7}, "GET", "/api/v1/executions/7/why", None, data(WHY), "position"),
    (
        "queues",
        "status",
        {},
        "GET",
        "/api/v1/admin/executions/queue",
        None,
        data(STATUS),
        "by_priority",
    ),
    (
        "settings",
        "get",
        {},
        "GET",
        "/api/v1/admin/settings",
        None,
        data(SETTINGS),
        "max_concurrent_executions",
    ),
    (
        "settings",
        "update",
        {"max_concurrent_executions": 5, "ageing_seconds": None},
        "PUT",
        "/api/v1/admin/settings",
        {"max_concurrent_executions": 5, "ageing_seconds": None},
        data(SETTINGS),
        "max_concurrent_executions",
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
    server.on(verb, path, answer)
    found = await caller.call(getattr(getattr(caller.client, space), method), **arguments)
    [request] = server.requests
    assert request.content == b"" if body is None else server.bodies(verb, path) == [body]
    assert getattr(found, read) == answer.json()["data"][read]


def queue(id_: int) -> dict[str, Any]:
    return {"id": id_, "action_ref": f"core.a{id_}", "queue_length": 1, "active_count": 0}


def entry(id_: int, position: int) -> dict[str, Any]:
    own = {"execution": id_, "position": position, "priority": "low", "state": "queued"}
    return {**own, "enqueued_at": MOMENT}


async def test_queues_are_read_page_by_page(caller: Caller, server: FakeServer) -> None:
    server.on("GET", QUEUES, page([queue(1)], more=True), page([queue(2)], 2))
    found = await caller.all(caller.client.queues.iterate(action_ref="core.*", waiting=True))
    assert [each.id for each in found] == [1, 2]
    first, second = (dict(each.url.params) for each in server.requests)
    assert (first["action_ref"], first["waiting"], first["page"]) == ("core.*", "true", "1")
    assert second["page"] == "2"
    server.on("GET", QUEUES, page([queue(1)]))
    assert len(await caller.call(caller.client.queues.list)) == 1


async def test_an_entry_that_slips_to_the_next_page_is_told_of_once(
    caller: Caller, server: FakeServer
) -> None:
    first = page([entry(8, 1), entry(9, 2)], more=True)
    server.on("GET", ENTRIES, first, page([entry(9, 2), entry(10, 3)], 2))
    found = await caller.all(
        caller.client.queues.iterate_entries("core.echo", group={"host": "ä"}, state="queued")
    )
    assert [each.execution for each in found] == [8, 9, 10]
    assert {each.url.params["group"] for each in server.requests} == {'{"host":"ä"}'}
    server.on("GET", ENTRIES, page([entry(8, 1)]))
    [only] = await caller.call(caller.client.queues.entries, "core.echo", page_size=1)
    assert (only.position, only.group, only.reason) == (1, None, None)


async def test_a_refusal_is_raised_as_what_it_is(caller: Caller, server: FakeServer) -> None:
    path = "/api/v1/admin/executions/7/priority"
    server.on("PUT", path, refusal(409, "The execution 7 no longer waits."))
    with pytest.raises(attune.client.Conflict, match="no longer waits"):
        await caller.call(caller.client.queues.reprioritize, 7, "high")
