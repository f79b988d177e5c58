"""The output of an execution, while it runs and afterwards."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import httpx2

from attune.client.calls import Call, path_of
from attune.client.errors import AttuneApiError, BadAnswer, ServerAway
from attune.client.session import Session
from attune.client.waiting import Watch
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import ExecutionId

STREAMS: Final = ("stdout", "stderr")
_TEXT: Final = frozenset({"content", "append"})
_LONGEST_QUIET: Final = 30.0  # longer than the server's signs of life are apart
_REOPEN_SECONDS: Final = 0.5


async def log_pieces(
    session: Session, id_: ExecutionId, stream: str, *, follow: bool
) -> AsyncGenerator[str, None]:
    """A stream that breaks is taken up again where it broke; where there is none, the result has the text."""
    if stream not in STREAMS:
        raise InvalidInput(f"stream must be one of {', '.join(STREAMS)}.", field="stream")
    watch, offset = Watch(session, id_), 0
    while True:
        complete = (await watch.look()).is_finished
        try:
            async with aclosing(_events(session, id_, stream, offset)) as events:
                async for event in events:
                    if event.event in _TEXT:
                        offset = _after(event, offset)
                        yield event.data
                    if event.event == "done" or not (follow or complete):
                        return
        except (AttuneApiError, BadAnswer):
            execution = await (watch.until_finished() if follow else watch.look())
            yield execution.output(stream).encode()[offset:].decode(errors="replace")
            return
        except ServerAway:
            complete = False
        if complete:
            return
        await session.transport.sleep(_REOPEN_SECONDS)


async def _events(
    session: Session, id_: ExecutionId, stream: str, offset: int
) -> AsyncGenerator[httpx2.ServerSentEvent, None]:
    path = path_of("executions", id_, "logs", stream, "stream")
    call: Call[Any] = Call("GET", path, Any, query={"offset": offset})
    async with session.events(call, _LONGEST_QUIET) as events:
        async for event in events:
            yield event


def _after(event: httpx2.ServerSentEvent, offset: int) -> int:
    """The position after a piece, in bytes of the text's UTF-8 form: the event's id where it has one."""
    return int(event.id) if event.id.isdecimal() else offset + len(event.data.encode())
