"""A conversation with one server: which token is shown, and when a request is sent again."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx2
import msgspec

from attune.client.accounts import Tokens
from attune.client.calls import Call, post
from attune.client.errors import AttuneApiError, ServerAway
from attune.client.servers import Server
from attune.client.transports import Transport
from attune.client.wire import bad_answer, check, explained, request_of
from attune.kernel.errors import InvalidInput

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """`seconds` bound each wait for the server's next bytes; `delays` are between repeated requests."""

    seconds: float = 30.0
    delays: tuple[float, ...] = (0.1, 0.3)


PATIENT: Final = Patience()


class Session:
    """`keep` is told of every new pair of tokens, so that they outlive this process where that is wanted."""

    def __init__(
        self,
        transport: Transport,
        server: Server,
        patience: Patience = PATIENT,
        keep: Callable[[Tokens], None] = lambda _tokens: None,
    ) -> None:
        self.transport = transport
        self.server = server
        self._patience = patience
        self._keep = keep
        self._access = server.access_token
        self._refresh = server.refresh_token

    async def run(self, call: Call[T]) -> T:
        used = self._access
        response = await self._sent(call)
        if response.status_code == 401 and not call.anonymous and await self._renewed(used):
            response = await self._sent(call)
        check(response, response.content)
        return self._decoded(call, response)

    @asynccontextmanager
    async def events(
        self, call: Call[Any], quiet: float
    ) -> AsyncIterator[AsyncIterator[httpx2.ServerSentEvent]]:
        """The server's events. Silence of `quiet` seconds, or a broken connection, is `ServerAway`."""
        used = self._access
        async with AsyncExitStack() as open_streams:
            with explained(self.server):
                response = await open_streams.enter_async_context(self._stream(call, quiet))
                if response.status_code == 401 and await self._renewed(used):
                    response = await open_streams.enter_async_context(self._stream(call, quiet))
                if response.status_code >= 400:
                    check(response, await self.transport.read(response))
            yield self._events(response)

    async def adopt(self, call: Call[Tokens]) -> Tokens:
        """Get tokens, and speak with them from now on."""
        tokens = await self.run(call)
        self._access, self._refresh = tokens.access_token, tokens.refresh_token
        self._keep(tokens)
        return tokens

    async def renew(self) -> Tokens:
        """New tokens for the refresh token that is held."""
        if self._refresh is None:
            raise InvalidInput("No refresh token is held: log in first.", field="refresh_token")
        body = {"refresh_token": self._refresh}
        return await self.adopt(post("/auth/refresh", Tokens, body, anonymous=True))

    async def _renewed(self, used: str | None) -> bool:
        """Whether another token than the refused one is held now; somebody else may have renewed it."""
        if self._access != used:
            return True
        if self._refresh is None:
            return False
        try:
            await self.renew()
        except AttuneApiError:
            return False
        return True

    async def _sent(self, call: Call[Any]) -> httpx2.Response:
        for delay in self._patience.delays if call.repeatable else ():
            try:
                return await self._exchange(call)
            except ServerAway:
                await self.transport.sleep(delay)
        return await self._exchange(call)

    async def _exchange(self, call: Call[Any]) -> httpx2.Response:
        request = request_of(call, self.server, self._access, read_seconds=self._patience.seconds)
        with explained(self.server):
            return await self.transport.send(request)

    def _decoded(self, call: Call[T], response: httpx2.Response) -> T:
        try:
            return call.decode(response.content)
        except msgspec.MsgspecError as error:
            why = f"its answer to {call.method} {call.path} cannot be read ({error})"
            raise bad_answer(self.server, why) from error

    @asynccontextmanager
    async def _stream(self, call: Call[Any], quiet: float) -> AsyncIterator[httpx2.Response]:
        request = request_of(
            call, self.server, self._access, read_seconds=quiet, Accept="text/event-stream"
        )
        async with self.transport.stream(request) as response:
            yield response

    async def _events(self, response: httpx2.Response) -> AsyncIterator[httpx2.ServerSentEvent]:
        with explained(self.server):
            async for event in self.transport.events(response):
                yield event
