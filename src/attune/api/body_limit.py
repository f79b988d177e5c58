"""Refuses a body that is too large before it is read: by its announced length, or else while it arrives."""

from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attune.api.errors import TooLarge, answer_to_error

JSON_BYTES: Final = 10 * 1024 * 1024


class BodyLimit:
    """`limit_of` tells how many bytes a path takes."""

    def __init__(self, app: ASGIApp, limit_of: Callable[[str], int]) -> None:
        self._app = app
        self._limit_of = limit_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        limit = self._limit_of(scope["path"])
        if _announced(scope) > limit:
            return await _refuse(limit, scope, receive, send)
        counted = _Counted(limit, scope, receive, send)
        return await self._app(scope, counted.receive, counted.send)


class _Counted:
    """Ends the body at the limit as if the client had gone, and answers in place of whoever read it."""

    def __init__(self, limit: int, scope: Scope, receive: Receive, send: Send) -> None:
        self._limit = limit
        self._scope = scope
        self._receive = receive
        self._send = send
        self._count = 0
        self._answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._count += len(message.get("body", b""))
        return {"type": "http.disconnect"} if self._count > self._limit else message

    async def send(self, message: Message) -> None:
        if self._count <= self._limit:
            await self._send(message)
        elif not self._answered:
            self._answered = True
            await _refuse(self._limit, self._scope, self._receive, self._send)


async def _refuse(limit: int, scope: Scope, receive: Receive, send: Send) -> None:
    """The rest of the body is not waited for, so the connection cannot be used again."""
    error = TooLarge(f"The body is larger than {limit} bytes.", limit_bytes=limit)
    answer = answer_to_error(error)
    answer.headers["Connection"] = "close"
    await answer(scope, receive, send)


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value[:20]) if value.isdigit() else 0
    return 0
