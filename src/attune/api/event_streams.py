"""Answers that do not end by themselves: server-sent events, for as long as the client stays and may see them."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast

from fastapi import Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from starlette.types import Receive, Scope, Send

from attune.identities.accounts import Accounts
from attune.identities.grant_book import GrantBook
from attune.identities.rights import Rights
from attune.kernel.clock import Clock
from attune.kernel.errors import Unauthenticated

HEARTBEAT: Final = 15.0

LISTENING: Final = format_sse_event(comment="listening")
STILL_HERE: Final = format_sse_event(comment="still here")
TOO_SLOW: Final = format_sse_event(comment="this client is too slow and has lost its place")
NO_LONGER: Final = format_sse_event(comment="the token is no longer valid")

DESCRIBED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class EventStream(StreamingResponse):
    """`leave` is called when it is over, however it ends, also when it never began."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


class Admission:
    """Whether the caller is still who he was. Rights change and tokens end while a stream is open."""

    def __init__(self, request: Request, rights: Rights, clock: Clock) -> None:
        self.rights = rights
        self._state = request.app.state
        self._token = request.headers["authorization"].partition(" ")[2].strip()
        self._clock = clock
        self._checked = clock.monotonic()

    async def holds(self) -> bool:
        """Looks again now and then; `rights` are those of the last look."""
        if self._clock.monotonic() - self._checked < HEARTBEAT:
            return True
        self._checked = self._clock.monotonic()
        try:
            caller = await cast(Accounts, self._state.accounts).caller(self._token)
        except Unauthenticated:
            return False
        self.rights = await cast(GrantBook, self._state.grants).rights_of(caller)
        return True
