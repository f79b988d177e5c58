"""Each test of the client runs twice: with the blocking one and with the one that is awaited."""

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from attune.client import AsyncClient, Client, Patience, Server
from attune.client.accounts import Tokens
from tests.unit.client.fake import URL, FakeServer

HASTY = Patience(seconds=5, delays=(0.0, 0.0))


class Caller:
    """Makes the two clients alike: `call` gives a result, `all` the items of a listing."""

    def __init__(self, server: FakeServer, *, awaited: bool) -> None:
        self._transport = httpx2.MockTransport(server)
        self._awaited = awaited
        self.kept: list[Tokens] = []
        self.use(Server(URL, access_token="token"))

    def use(self, server: Server) -> None:
        shared: dict[str, Any] = {"patience": HASTY, "keep": self.kept.append}
        self.client: Any
        if self._awaited:
            http = httpx2.AsyncClient(transport=self._transport)
            self.client = AsyncClient(server, http=http, **shared)
        else:
            self.client = Client(server, http=httpx2.Client(transport=self._transport), **shared)

    async def call(self, operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = operation(*args, **kwargs)
        assert inspect.isawaitable(result) is self._awaited
        return await result if self._awaited else result

    async def all(self, listing: Any) -> list[Any]:
        if self._awaited:
            return [item async for item in listing]
        return list(listing)


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture(params=["blocking", "awaited"])
async def caller(server: FakeServer, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    caller = Caller(server, awaited=request.param == "awaited")
    yield caller
    await caller.call(caller.client.close)
