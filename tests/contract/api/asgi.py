"""Calls an application in this process, as one identity: JSON, forms, and bodies that arrive in pieces."""

import json
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from fastapi import FastAPI

_BOUNDARY = "a-boundary-of-tests"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def data(self) -> Any:
        assert self.status in (200, 201), (self.status, self.raw[:500])
        return self.body["data"]

    @property
    def refs(self) -> list[str]:
        assert self.status == 200, (self.status, self.raw[:500])
        return [each["ref"] for each in self.body["items"]]


@dataclass(frozen=True)
class Client:
    """`token` is None for one who has none."""

    app: FastAPI
    token: str | None = None
    sent_pieces: list[int] = field(default_factory=list)

    async def get(self, path: str, **query: Any) -> Reply:
        return await self.send("GET", path, query=query)

    async def post(self, path: str, body: Any = None) -> Reply:
        return await self.send("POST", path, body)

    async def put(self, path: str, body: Any = None) -> Reply:
        return await self.send("PUT", path, body)

    async def delete(self, path: str) -> Reply:
        return await self.send("DELETE", path)

    async def upload(self, archive: bytes, **fields: str) -> Reply:
        headers = {"content-type": f"multipart/form-data; boundary={_BOUNDARY}"}
        body = form_of({"pack": archive, **{name: v.encode() for name, v in fields.items()}})
        return await self.send("POST", "/api/v1/packs/upload", [body], headers)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | str | None = None,
    ) -> Reply:
        """A list or iterator of bytes is sent piece by piece, anything else as JSON."""
        sent = {"content-type": "application/json", **(headers or {})}
        if self.token is not None:
            sent["authorization"] = f"Bearer {self.token}"
        asked = query if isinstance(query, str) else urlencode(query or {}, doseq=True)
        return await self._exchange(scope_of(method, path, asked, sent), _pieces(body))

    async def _exchange(self, scope: dict[str, Any], pieces: Iterable[bytes]) -> Reply:
        messages: list[MutableMapping[str, Any]] = []
        waiting = iter(pieces)

        async def receive() -> dict[str, Any]:
            piece = next(waiting, None)
            self.sent_pieces.append(len(piece or b""))
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

        async def send(message: MutableMapping[str, Any]) -> None:
            messages.append(message)

        await self.app(scope, receive, send)
        start, *rest = messages
        answered = b"".join(each.get("body", b"") for each in rest)
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Reply(start["status"], headers, answered)


def form_of(fields: Mapping[str, bytes], boundary: str = _BOUNDARY) -> bytes:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        + value
        + b"\r\n"
        for name, value in fields.items()
    ]
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


def _pieces(body: Any) -> Iterable[bytes]:
    if body is None:
        return []
    if isinstance(body, str | dict | int | float | bool):
        return [json.dumps(body).encode()]
    return [body] if isinstance(body, bytes) else body


def scope_of(method: str, path: str, query: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
