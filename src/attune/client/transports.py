"""The two ways to the server. All that is above them is written once, as coroutines.

`BlockingTransport` does its work inside coroutines that never suspend, so that whoever drives one gets its
result at once and needs no event loop; `operations.py` does that for the blocking client.
"""

import ipaddress
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import anyio
import httpx2

_LARGEST_EVENT: Final = 64 * 1024 * 1024  # a whole log may come as one event


class Transport(Protocol):
    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """The answer with its body."""

    def stream(self, request: httpx2.Request) -> AbstractAsyncContextManager[httpx2.Response]:
        """The answer as soon as its head is there; `read` or `events` gives what follows."""

    async def read(self, response: httpx2.Response) -> bytes: ...

    def events(self, response: httpx2.Response) -> AsyncIterator[httpx2.ServerSentEvent]: ...

    async def sleep(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


class BlockingTransport:
    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return self._http.send(request)

    @asynccontextmanager
    async def stream(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        response = self._http.send(request, stream=True)
        try:
            yield response
        finally:
            response.close()

    async def read(self, response: httpx2.Response) -> bytes:
        return response.read()

    async def events(self, response: httpx2.Response) -> AsyncIterator[httpx2.ServerSentEvent]:
        for event in httpx2.EventSource(response, _LARGEST_EVENT):
            yield event

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - blocking is what this one is for

    async def close(self) -> None:
        self._http.close()


class AwaitingTransport:
    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return await self._http.send(request)

    @asynccontextmanager
    async def stream(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        response = await self._http.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def read(self, response: httpx2.Response) -> bytes:
        return await response.aread()

    async def events(self, response: httpx2.Response) -> AsyncIterator[httpx2.ServerSentEvent]:
        async for event in httpx2.EventSource(response, _LARGEST_EVENT):
            yield event

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def close(self) -> None:
        await self._http.aclose()


def connection_options(url: str) -> dict[str, Any]:
    """No proxy is asked to reach this machine, and no certificates are read where none are used."""
    parts = urlsplit(url)
    options: dict[str, Any] = {"trust_env": not _is_loopback(parts.hostname or "")}
    if parts.scheme == "http":
        options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return options


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
