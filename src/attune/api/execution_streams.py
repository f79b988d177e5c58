"""/executions/stream: every creation and every change of a status, as it happens."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.event_streams import (
    DESCRIBED,
    HEARTBEAT,
    LISTENING,
    NO_LONGER,
    STILL_HERE,
    TOO_SLOW,
    Admission,
    EventStream,
)
from attune.api.execution_access import check_readable, may_read
from attune.api.listeners import Listener
from attune.api.parts import ApiParts
from attune.api.row_ids import checked
from attune.identities.constraints import execution_of
from attune.identities.rights import Rights
from attune.kernel.errors import Forbidden
from attune.kernel.ids import ExecutionId

_Only = Annotated[int | None, Query(description="This one alone.")]


def execution_stream_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/executions", "executions")
    feed, clock = parts.feed, parts.clock

    @routes.get(
        "/stream",
        summary="Follow executions",
        response_class=StreamingResponse,
        responses={**refusals(403, 404), **DESCRIBED},
    )
    async def stream(request: Request, rights: RightsOf, execution_id: _Only = None) -> EventStream:
        only = None if execution_id is None else ExecutionId(checked(execution_id, "execution"))
        _check_token(rights, only)
        if only is not None:
            await parts.database.read(check_readable, rights, only)
        admission = Admission(request, rights, clock)
        listener = await feed.listen(only)
        return EventStream(_changes(listener, admission), lambda: feed.leave(listener))

    return routes


async def _changes(listener: Listener, admission: Admission) -> AsyncIterator[bytes]:
    yield LISTENING
    while not listener.ended:
        if not await admission.holds():
            yield NO_LONGER
            return
        rights, changes = admission.rights, listener.take()
        if events := b"".join(each.event for each in changes if may_read(rights, each.execution)):
            yield events
        if listener.fallen_behind:
            yield TOO_SLOW
            return
        if not await listener.stirred_within(HEARTBEAT):
            yield STILL_HERE


def _check_token(rights: Rights, only: ExecutionId | None) -> None:
    if rights.is_execution and (only is None or only != execution_of(rights.caller)):
        raise Forbidden(
            "The token of an execution has no permission to follow others:"
            " execution_id must be its own.",
            field="execution_id",
        )
