"""core.http_request: any answer completes it, no answer fails it."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from attune.kernel.statuses import ExecutionStatus
from attune.simulation.clock import ManualClock
from attune.worker.model import Outcome
from tests.unit.worker.web import Web, answer, serving
from tests.unit.worker.worlds import World


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with serving() as web:
        yield web


async def request(world: World, url: str, **parameters: Any) -> Outcome:
    return await world.run_native("core.http_request", parameters={"url": url, **parameters})


async def test_an_answer_is_data(world: World, web: Web) -> None:
    web.answering = lambda _: answer(b'{"a": 1}', content_type="application/json", x_one="1")
    outcome = await request(world, f"{web.url}/path")
    assert outcome.status is ExecutionStatus.COMPLETED
    data = outcome.result.data
    assert data.pop("elapsed_ms") >= 0
    assert data.pop("headers")["x-one"] == "1"
    assert data == {
        "status_code": 200,
        "body": '{"a": 1}',
        "json": {"a": 1},
        "url": f"{web.url}/path",
        "success": True,
    }


@pytest.mark.parametrize("status", ["404 Not Found", "500 Internal Server Error"])
async def test_a_refusal_completes_without_success(world: World, web: Web, status: str) -> None:
    web.answering = lambda _: answer(b"no such thing", status)
    outcome = await request(world, web.url)
    assert outcome.status is ExecutionStatus.COMPLETED
    assert outcome.result.data["success"] is False
    assert outcome.result.data["status_code"] == int(status[:3])
    assert outcome.result.data["body"] == "no such thing"
    assert outcome.result.data["json"] is None


async def test_a_request_is_sent_as_it_was_asked_for(world: World, web: Web) -> None:
    await request(
        world,
        web.url,
        method="put",
        headers={"X-Number": 5, "X-Text": "t", "X-Flag": True},
        body="as it is",
        query_params={"q": "a b", "n": 1, "many": [1, 2], "flag": True},
    )
    (asked,) = web.asked
    assert asked.method == "PUT"
    assert asked.target == "/?q=a+b&n=1&many=1&many=2&flag=true"
    assert asked.body == b"as it is"
    assert [asked.headers[f"x-{name}"] for name in ("number", "text", "flag")] == ["5", "t", "true"]


async def test_a_json_body_says_that_it_is_one(world: World, web: Web) -> None:
    await request(world, web.url, method="POST", json_body={"a": [1]})
    await request(world, web.url, method="POST", json_body=1, headers={"content-type": "x/y"})
    assert [asked.body for asked in web.asked] == [b'{"a":[1]}', b"1"]
    assert [asked.headers["content-type"] for asked in web.asked] == ["application/json", "x/y"]


async def test_credentials_are_sent_in_the_way_asked_for(world: World, web: Web) -> None:
    await request(world, web.url, auth_type="basic", auth_username="u", auth_password="p")
    await request(world, web.url, auth_type="bearer", auth_token="t")
    await request(world, web.url)
    basic = base64.b64encode(b"u:p").decode()
    sent = [asked.headers.get("authorization") for asked in web.asked]
    assert sent == [f"Basic {basic}", "Bearer t", None]


async def test_redirects_are_followed_to_a_bound(world: World, web: Web) -> None:
    web.answering = lambda asked: (
        answer(b"there") if asked.target == "/b" else answer(b"", "302 Found", location="/b")
    )
    outcome = await request(world, f"{web.url}/a")
    assert outcome.result.data["body"] == "there"
    assert outcome.result.data["url"] == f"{web.url}/b"
    outcome = await request(world, f"{web.url}/a", follow_redirects=False)
    assert outcome.result.data["status_code"] == 302
    web.answering = lambda _: answer(b"", "302 Found", location="/a")
    outcome = await request(world, f"{web.url}/a", max_redirects=3)
    assert outcome.status is ExecutionStatus.FAILED
    assert "redirected too often" in str(outcome.result.error)


async def test_credentials_do_not_follow_to_another_server(world: World, web: Web) -> None:
    async with serving() as other:
        web.answering = lambda _: answer(b"", "302 Found", location=f"{other.url}/")
        await request(world, web.url, auth_type="bearer", auth_token="t")
        assert "authorization" not in other.asked[0].headers


async def test_no_answer_in_time_fails_in_words_of_its_own(tmp_path: Path, web: Web) -> None:
    clock = ManualClock()
    world = World(tmp_path, clock=clock)
    web.answering = lambda _: None
    running = asyncio.create_task(request(world, web.url, timeout=5))
    await web.heard.wait()
    await clock.advance(5)
    outcome = await running
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.error == "No answer came within 5 s."
    assert outcome.result.data["success"] is False
    assert outcome.result.data["error"] == outcome.result.error
    assert outcome.result.data["status_code"] is None


async def test_a_server_that_is_not_there_fails(world: World) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        outcome = await request(world, f"http://127.0.0.1:{unused.getsockname()[1]}/")
    assert outcome.status is ExecutionStatus.FAILED
    assert str(outcome.result.error).startswith("Could not connect")
    assert "timed out" not in str(outcome.result.error)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"url": "ftp://127.0.0.1/"}, "http or https"),
        ({"url": "no url"}, "http or https"),
        ({"url": "http://127.0.0.1:port/"}, "http or https"),
        ({"url": 5}, "url"),
        ({"url": "http://127.0.0.1:1", "auth_type": "magic"}, "auth_type"),
        ({"url": "http://127.0.0.1:1", "headers": {"a": "ü"}}, "HTTP does not allow"),
    ],
)
async def test_a_request_that_cannot_be_made_fails_with_a_sentence(
    world: World, parameters: dict[str, Any], words: str
) -> None:
    outcome = await request(world, **parameters)
    assert outcome.status is ExecutionStatus.FAILED
    assert words in str(outcome.result.error)


async def test_headers_that_http_does_not_allow_are_not_repeated(world: World, web: Web) -> None:
    outcome = await request(world, web.url, headers={"X-Key": "secret\n"})
    assert outcome.status is ExecutionStatus.FAILED
    assert "HTTP does not allow" in str(outcome.result.error)
    assert "secret" not in str(outcome.result)


async def test_an_answer_that_is_not_http_fails(world: World, web: Web) -> None:
    web.answering = lambda _: b"nonsense\r\n\r\n"
    outcome = await request(world, web.url)
    assert "not proper HTTP" in str(outcome.result.error)


async def test_a_body_without_end_is_cut(world: World, web: Web) -> None:
    web.answering = lambda _: answer(b"x" * (10 * 1024 * 1024 + 5))
    outcome = await request(world, web.url)
    assert len(outcome.result.data["body"]) == 10 * 1024 * 1024
    assert outcome.result.data["truncated"] is True


async def test_a_body_is_read_in_its_own_charset(world: World, web: Web) -> None:
    web.answering = lambda _: answer(
        "é".encode("latin-1"), content_type="text/plain; charset=latin-1"
    )
    assert (await request(world, web.url)).result.data["body"] == "é"
    web.answering = lambda _: answer(b"a\xff", content_type="text/plain; charset=klingon")
    assert (await request(world, web.url)).result.data["body"] == "a\ufffd"


async def test_a_password_in_the_url_is_not_in_the_data(world: World, web: Web) -> None:
    outcome = await request(world, web.url.replace("http://", "http://user:hush@"))
    assert outcome.status is ExecutionStatus.COMPLETED
    assert "hush" not in str(outcome.result)
    assert web.asked[0].headers["authorization"].startswith("Basic ")
