"""Calls an application in this process, without a network and without a client library."""

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

from fastapi import FastAPI


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def data(self) -> Any:
        assert self.status == 200, self
        return self.body["data"]


class Caller(Protocol):
    async def __call__(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> Reply: ...


def calls_to(app: FastAPI) -> Caller:
    """A body of bytes is sent as it is, anything else as JSON."""

    async def call(
        method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> Reply:
        sent = {"content-type": "application/json", **headers}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        return await _exchange(app, _scope(method, path, sent), raw)

    return call


def _scope(method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


async def _exchange(app: FastAPI, scope: dict[str, Any], raw: bytes) -> Reply:
    messages: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    await app(scope, receive, send)
    start, *rest = messages
    answered = b"".join(each.get("body", b"") for each in rest)
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], headers, json.loads(answered) if answered else None)
