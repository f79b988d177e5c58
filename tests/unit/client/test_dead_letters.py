"""`client.dead_letters` with either client."""

from typing import Any

import httpx2
import pytest

import attune.client
from tests.unit.client.conftest import Caller
from tests.unit.client.fake import MOMENT, FakeServer, data, page, plain, refusal

LETTERS = "/api/v1/dead-letters"


def letter(id_: int = 7, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "queue": "executor.event.created",
        "reason": "failed",
        "error": "no",
        "message_id": None,
        "message_type": "event.created",
        "retry_count": 2,
        "size_bytes": 3,
        "died_at": MOMENT,
        "replayed_at": None,
        "replayed_by": None,
        "replay_count": 0,
        "created": MOMENT,
        "updated": MOMENT,
        "a_field_of_tomorrow": 1,
        **more,
    }


DONE = {"replayed": 3, "refused": [{"id": 9, "error": "gone"}], "remaining": 1}

# Method, arguments, the request's verb and path, its body, the answer, what is read of it.
OPERATIONS: list[tuple[str, dict[str, Any], str, str, Any, httpx2.Response, str, Any]] = [
    ("get", {"ref": 7}, "GET", "/7", None, data(letter(body="{}")), "body", "{}"),
    ("replay", {"id_": 7}, "POST", "/7/replay", None, data(letter()), "id", 7),
    ("replay_many", {}, "POST", "/replay", {}, data(DONE), "replayed", 3),
    (
        "replay_many",
        {"queue": "q", "reason": "failed", "message_type": "t", "limit": 5},
        "POST",
        "/replay",
        {"queue": "q", "reason": "failed", "message_type": "t", "limit": 5},
        data(DONE),
        "remaining",
        1,
    ),
    (
        "delete",
        {"id_": 7},
        "DELETE",
        "/7",
        None,
        plain({"success": True, "message": "gone"}),
        "message",
        "gone",
    ),
]


@pytest.mark.parametrize(
    ("method", "arguments", "verb", "path", "body", "answer", "read", "value"), OPERATIONS
)
async def test_an_operation_sends_what_the_contract_says_and_reads_the_answer(
    caller: Caller,
    server: FakeServer,
    method: str,
    arguments: dict[str, Any],
    verb: str,
    path: str,
    body: Any,
    answer: httpx2.Response,
    read: str,
    value: Any,
) -> None:
    server.on(verb, LETTERS + path, answer)
    found = await caller.call(getattr(caller.client.dead_letters, method), **arguments)
    [request] = server.requests
    assert request.content == b"" if body is None else server.bodies(verb, LETTERS + path) == [body]
    assert getattr(found, read) == value


async def test_letters_are_read_page_by_page(caller: Caller, server: FakeServer) -> None:
    first, second = page([letter(9), letter(8)], more=True), page([letter(8), letter(7)], 2)
    server.on("GET", LETTERS, first, second)
    letters = caller.client.dead_letters
    found = await caller.all(letters.iterate(queue="q", reason="expired", replayed=False))
    assert [each.id for each in found] == [9, 8, 7]
    asked = [dict(each.url.params) for each in server.requests]
    wanted = {"queue": "q", "reason": "expired", "replayed": "false", "page_size": "100"}
    assert asked == [{**wanted, "page": "1"}, {**wanted, "page": "2"}]
    server.on("GET", LETTERS, page([letter()]))
    [only] = await caller.call(letters.list, message_type="t")
    assert (only.retry_count, only.died_at.year) == (2, 2026)


@pytest.mark.parametrize(
    ("body", "encoding", "content"),
    [("ü", "utf-8", "ü".encode()), ("/wA=", "base64", b"\xff\x00")],
)
async def test_the_bytes_of_a_body_are_there_however_it_was_sent(
    caller: Caller, server: FakeServer, body: str, encoding: str, content: bytes
) -> None:
    server.on("GET", f"{LETTERS}/7", data(letter(body=body, body_encoding=encoding)))
    found = await caller.call(caller.client.dead_letters.get, 7)
    assert found.content == content


async def test_refused_letters_are_named(caller: Caller, server: FakeServer) -> None:
    server.on("POST", f"{LETTERS}/replay", data(DONE))
    found = await caller.call(caller.client.dead_letters.replay_many)
    assert [(each.id, each.error) for each in found.refused] == [(9, "gone")]


async def test_a_replay_that_is_refused_is_raised_and_not_sent_again(
    caller: Caller, server: FakeServer
) -> None:
    server.on("POST", f"{LETTERS}/7/replay", refusal(409, "The queue is gone."))
    with pytest.raises(attune.client.Conflict, match="is gone"):
        await caller.call(caller.client.dead_letters.replay, 7)
    assert len(server.requests) == 1
