"""Both clients over real connections: streams that wait, silence, and nobody at the other end."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from attune.client import AsyncClient, Client, Patience, ServerAway
from harness.ports import LOOPBACK, free_port
from tests.unit.client.fake import execution


class Stage(ThreadingHTTPServer):
    """An execution that runs until `end` is called; its streams are open until then."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((LOOPBACK, 0), _Handler)
        self.ended = threading.Event()
        self.opened = threading.Event()
        self.talks = True
        self.url = f"http://{LOOPBACK}:{self.server_address[1]}"

    def end(self) -> None:
        self.ended.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stage

    def do_GET(self) -> None:
        if "/stream" in self.path:
            self._stream()
        else:
            status = "completed" if self.server.ended.is_set() else "running"
            self._send({"data": execution(status=status)})

    def _send(self, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.server.opened.set()
        self.server.ended.wait(30)
        if not self.server.talks:
            threading.Event().wait(30)
        change = json.dumps({"entity_id": 7, "status": "completed"})
        text = f"data: {change}\n\n" if "execution_id" in self.path else "event: done\ndata: x\n\n"
        self.wfile.write(text.encode())
        self.close_connection = True

    def log_message(self, *_args: Any) -> None:
        """Nothing on standard error."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    thread = threading.Thread(target=stage.serve_forever, daemon=True)
    thread.start()
    yield stage
    stage.end()
    stage.shutdown()
    stage.server_close()
    thread.join()


def end_when_it_is_waited_for(stage: Stage) -> threading.Thread:
    def end() -> None:
        assert stage.opened.wait(30)
        stage.end()

    thread = threading.Thread(target=end)
    thread.start()
    return thread


def test_the_blocking_client_hears_of_the_end(stage: Stage) -> None:
    ending = end_when_it_is_waited_for(stage)
    with Client(stage.url) as client:
        assert client.executions.wait(7, timeout=30).succeeded
        assert list(client.executions.logs(7, follow=True)) == []
    ending.join()


async def test_the_awaited_client_hears_of_the_end(stage: Stage) -> None:
    ending = end_when_it_is_waited_for(stage)
    async with AsyncClient(stage.url) as client:
        assert (await client.executions.wait(7, timeout=30)).succeeded
        assert [piece async for piece in client.executions.logs(7, follow=True)] == []
    ending.join()


def test_a_stream_that_stays_silent_is_not_believed(stage: Stage) -> None:
    stage.talks = False
    ending = end_when_it_is_waited_for(stage)
    with Client(stage.url) as client:
        assert client.executions.wait(7, timeout=30).succeeded
    ending.join()


@pytest.mark.parametrize("path", ["http://127.0.0.1", "http://localhost"])
def test_nobody_at_the_other_end_is_told(path: str) -> None:
    client = Client(f"{path}:{free_port()}", patience=Patience(delays=()))
    with client, pytest.raises(ServerAway, match=r"Cannot reach Attune at http://.*the given url"):
        client.rules.list()


async def test_nobody_at_the_other_end_is_told_to_the_awaited_client() -> None:
    client = AsyncClient(f"http://{LOOPBACK}:{free_port()}", patience=Patience(delays=()))
    async with client:
        with pytest.raises(ServerAway, match="Cannot reach Attune"):
            await client.rules.list()
