"""Follows a stream of events of an application in this process, and leaves when told to."""

import asyncio
import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from fastapi import FastAPI

from tests.contract.api.asgi import scope_of

PATIENCE = 20.0


@dataclass(frozen=True)
class Event:
    """One event as a browser has it; a comment is an event without a name and data."""

    name: str
    data: str
    id: str
    comment: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Stream:
    def __init__(
        self,
        app: FastAPI,
        token: str | None,
        path: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        sent = {**(headers or {})}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        self._scope = scope_of("GET", path, urlencode(query), sent)
        self._app = app
        self._gone = asyncio.Event()
        self._sent: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._buffer = ""
        self._asked = False
        self.taking = asyncio.Event()
        self.taking.set()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._app(self._scope, self._receive, self._send))
        start = await self._next()
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        self.taking.set()
        self._gone.set()
        await asyncio.wait_for(self._task, PATIENCE)

    async def event(self) -> Event:
        """The next one; `EOFError` when the server has ended the stream."""
        while "\n\n" not in self._buffer:
            message = await self._next()
            self._buffer += message.get("body", b"").decode()
            if not message.get("more_body") and "\n\n" not in self._buffer:
                raise EOFError
        text, _, self._buffer = self._buffer.partition("\n\n")
        return parsed(text)

    async def named(self, *names: str) -> Event:
        """The next with one of these names; others are passed over."""
        while (event := await self.event()).name not in names:
            pass
        return event

    async def change(self, status: str | None = None) -> Any:
        """The next change of a status; that to `status`, if one is named."""
        while True:
            event = await self.event()
            if event.data and status in (None, event.json["status"]):
                return event.json

    async def rest(self) -> list[Event]:
        found: list[Event] = []
        try:
            while True:
                found.append(await self.event())
        except EOFError:
            return found

    async def _next(self) -> MutableMapping[str, Any]:
        return await asyncio.wait_for(self._sent.get(), PATIENCE)

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        """A client that does not take makes the server wait here, as a full socket does."""
        await self.taking.wait()
        self._sent.put_nowait(message)


def parsed(text: str) -> Event:
    fields: dict[str, list[str]] = {"event": [], "data": [], "id": [], "": []}
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        fields[name].append(value.removeprefix(" "))
    words, data, ids, comments = (fields[key] for key in ("event", "data", "id", ""))
    return Event("".join(words), "\n".join(data), "".join(ids), "\n".join(comments))
