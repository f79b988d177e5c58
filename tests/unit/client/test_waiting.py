"""Waiting for an execution and reading its output, over streams that work, break, or are not there."""

from typing import Any

import httpx2
import pytest

from attune.client import ExecutionStatus, NotFinished, NotFound, Server
from attune.kernel.errors import InvalidInput
from tests.unit.client.conftest import Caller
from tests.unit.client.fake import (
    URL,
    FakeServer,
    change,
    data,
    events,
    execution,
    refusal,
    tokens,
)

ONE = "/api/v1/executions/7"
CHANGES = "/api/v1/executions/stream"
STDOUT = "/api/v1/executions/7/logs/stdout/stream"
RUNNING = data(execution(status="running"))
COMPLETED = data(execution(result={"stdout": "grüße\nworld\n"}))


async def waited(caller: Caller, **how: Any) -> tuple[Any, list[ExecutionStatus]]:
    seen: list[ExecutionStatus] = []
    found = await caller.call(caller.client.executions.wait, 7, on_status=seen.append, **how)
    return found, seen


async def test_the_stream_tells_of_the_end(caller: Caller, server: FakeServer) -> None:
    server.on("GET", ONE, data(execution(status="requested")), COMPLETED)
    told = events(
        ("hello", "{}"), change(8, "failed"), change(7, "running"), change(7, "completed")
    )
    server.on("GET", CHANGES, told)
    found, seen = await waited(caller)
    assert found.succeeded
    assert seen == ["requested", "running", "completed"]
    [stream] = server.asked("GET", CHANGES)
    assert dict(stream.url.params) == {"execution_id": "7"}
    assert stream.headers["accept"] == "text/event-stream"
    assert len(server.asked("GET", ONE)) == 2


async def test_one_that_has_ended_already_needs_no_event(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, COMPLETED)
    server.on("GET", CHANGES, events(broken=True))
    found, seen = await waited(caller)
    assert found.succeeded
    assert seen == ["completed"]


async def test_an_event_that_was_lost_costs_a_moment_only(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, RUNNING, COMPLETED)
    server.on("GET", CHANGES, events(broken=True))
    found, seen = await waited(caller, timeout=60)
    assert found.succeeded
    assert seen == ["running", "completed"]


async def test_without_a_stream_it_looks_again_and_again(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, RUNNING, RUNNING, RUNNING, COMPLETED)
    server.on("GET", CHANGES, refusal(404, "No such path."))
    found, _ = await waited(caller)
    assert found.succeeded
    assert len(server.asked("GET", CHANGES)) == 1
    assert len(server.asked("GET", ONE)) == 4


async def test_what_answers_without_events_counts_as_no_stream(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, RUNNING, COMPLETED)
    server.on("GET", CHANGES, httpx2.Response(200, text="<html>"))
    assert (await waited(caller))[0].succeeded


async def test_it_waits_no_longer_than_it_is_told_to(caller: Caller, server: FakeServer) -> None:
    server.on("GET", ONE, RUNNING)
    server.on("GET", CHANGES, events(broken=True))
    with pytest.raises(NotFinished, match=r"Execution 7 is still running after 0\.05 s\."):
        await waited(caller, timeout=0.05)


async def test_an_unknown_execution_is_not_waited_for(caller: Caller, server: FakeServer) -> None:
    server.on("GET", ONE, refusal(404, "No execution has the id 7."))
    server.on("GET", CHANGES, events(broken=True))
    with pytest.raises(NotFound, match="id 7"):
        await waited(caller)


async def test_a_token_that_ran_out_is_renewed_for_a_stream(
    caller: Caller, server: FakeServer
) -> None:
    caller.use(Server(URL, access_token="old", refresh_token="of-old"))
    server.on("GET", ONE, RUNNING, COMPLETED)
    server.on("GET", CHANGES, refusal(401, "Expired."), events(change(7, "completed")))
    server.on("POST", "/auth/refresh", data(tokens()))
    assert (await waited(caller))[0].succeeded
    used = [each.headers["authorization"] for each in server.asked("GET", CHANGES)]
    assert used == ["Bearer old", "Bearer new-access"]


async def log(caller: Caller, **how: Any) -> list[str]:
    return await caller.all(caller.client.executions.logs(7, **how))


async def test_output_comes_in_pieces_until_it_is_done(caller: Caller, server: FakeServer) -> None:
    server.on("GET", ONE, RUNNING)
    pieces = [("waiting", ""), ("content", "grüße\n"), ("append", "world\n"), ("done", "")]
    server.on("GET", STDOUT, events(*pieces))
    assert await log(caller, follow=True) == ["grüße\n", "world\n"]


async def test_a_broken_stream_is_taken_up_where_it_broke(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, RUNNING)
    rest = events(("append", "world\n"), ("done", ""))
    server.on("GET", STDOUT, events(("content", "grüße\n"), broken=True), rest)
    assert await log(caller, follow=True) == ["grüße\n", "world\n"]
    offsets = [each.url.params["offset"] for each in server.asked("GET", STDOUT)]
    assert offsets == ["0", str(len("grüße\n".encode()))]


async def test_the_id_of_an_event_is_the_position_after_it(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, RUNNING)
    first = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        content=b"id: 4096\nevent: content\ndata: cut\n\n",
    )
    server.on("GET", STDOUT, first, events(("done", "")))
    assert await log(caller, follow=True) == ["cut"]
    assert server.asked("GET", STDOUT)[1].url.params["offset"] == "4096"


async def test_without_following_what_is_there_is_all(caller: Caller, server: FakeServer) -> None:
    server.on("GET", ONE, RUNNING)
    server.on("GET", STDOUT, events(("content", "so far"), broken=True))
    assert await log(caller) == ["so far"]
    server.on("GET", STDOUT, events(("waiting", ""), broken=True))
    assert await log(caller) == []


async def test_of_a_finished_one_the_whole_is_read(caller: Caller, server: FakeServer) -> None:
    server.on("GET", ONE, COMPLETED)
    server.on("GET", STDOUT, events(("content", "a"), ("append", "b"), ("done", "")))
    assert await log(caller) == ["a", "b"]


async def test_a_stream_that_ends_without_a_word_ends_the_log_of_a_finished_one(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, COMPLETED)
    server.on("GET", STDOUT, events(("content", "a")))
    assert await log(caller, follow=True) == ["a"]


async def test_without_a_stream_the_result_has_the_output(
    caller: Caller, server: FakeServer
) -> None:
    server.on("GET", ONE, RUNNING, COMPLETED)
    assert await log(caller, follow=True) == ["grüße\nworld\n"]


async def test_there_are_two_streams_and_no_third(caller: Caller) -> None:
    with pytest.raises(InvalidInput, match="one of stdout, stderr"):
        await log(caller, stream="stdin")
