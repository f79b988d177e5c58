"""/executions/{id}/logs: what an execution writes, so far or as it comes."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse

from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.event_streams import (
    DESCRIBED,
    HEARTBEAT,
    NO_LONGER,
    STILL_HERE,
    Admission,
    EventStream,
)
from attune.api.execution_access import check_readable
from attune.api.listeners import Listener
from attune.api.log_events import LogPosition, resumed
from attune.api.parts import ApiParts
from attune.api.row_ids import RowId, checked
from attune.kernel.clock import Clock
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.outputs import written_since
from attune.store.database import Database
from attune.worker.handoffs import OUTPUT_TOPIC

_LOOK: Final = 1.0  # seconds: what a wake that was missed costs
_FARTHEST: Final = 2**62


class StreamName(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


_Offset = Annotated[int, Query(ge=0, le=_FARTHEST, description="In bytes of UTF-8.")]
_Last = Annotated[str | None, Header(alias="Last-Event-ID")]


def log_stream_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/executions/{id}/logs/{stream}", "executions")
    database = parts.database

    @routes.get(
        "",
        summary="Show what it has written",
        response_class=PlainTextResponse,
        responses=refusals(404),
    )
    async def show(
        id: RowId,  # noqa: A002 - the path's word
        stream: StreamName,
        rights: RightsOf,
        offset: _Offset = 0,
    ) -> PlainTextResponse:
        execution_id = ExecutionId(checked(id, "execution"))
        await database.read(check_readable, rights, execution_id)
        found = await database.read(written_since, execution_id, stream, offset)
        return PlainTextResponse(found.text.decode(errors="replace"))

    @routes.get(
        "/stream",
        summary="Follow what it writes",
        response_class=StreamingResponse,
        responses={**refusals(404), **DESCRIBED},
    )
    async def follow(
        request: Request,
        id: RowId,  # noqa: A002 - the path's word
        stream: StreamName,
        rights: RightsOf,
        offset: _Offset = 0,
        last_event_id: _Last = None,
    ) -> EventStream:
        execution_id = ExecutionId(checked(id, "execution"))
        await database.read(check_readable, rights, execution_id)
        admission = Admission(request, rights, parts.clock)
        start = LogPosition(resumed(last_event_id, offset, _FARTHEST))
        return _followed(parts, execution_id, stream, start, admission)

    return routes


def _followed(
    parts: ApiParts,
    execution: ExecutionId,
    stream: StreamName,
    position: LogPosition,
    admission: Admission,
) -> EventStream:
    listener = parts.feed.follow(execution)

    def hear(key: str) -> None:
        if key in ("", str(execution)):
            listener.stir()

    deafen = parts.database.listen(OUTPUT_TOPIC, hear)

    def leave() -> None:
        deafen()
        parts.feed.leave(listener)

    follower = _Follower(parts.database, parts.clock, listener, execution, stream)
    return EventStream(follower.events(position, admission), leave)


@dataclass(frozen=True)
class _Follower:
    """Looks whenever something was told, and every second without: what counts is in the rows."""

    database: Database
    clock: Clock
    listener: Listener
    execution: ExecutionId
    stream: StreamName

    async def events(self, position: LogPosition, admission: Admission) -> AsyncIterator[bytes]:
        spoke = self.clock.monotonic()
        while not self.listener.ended:
            if not await admission.holds():
                yield NO_LONGER
                return
            self.listener.take()
            found = await self.database.read(
                written_since, self.execution, self.stream, position.offset, position.attempt
            )
            for event in position.told(found):
                yield event
                spoke = self.clock.monotonic()
            if found.ended:
                return
            if self.clock.monotonic() - spoke >= HEARTBEAT:
                yield STILL_HERE
                spoke = self.clock.monotonic()
            await self.listener.stirred_within(_LOOK)
