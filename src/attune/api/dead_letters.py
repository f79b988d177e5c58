"""/dead-letters: messages that nobody could handle, looked at, sent back and let go. For administrators."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query

from attune.api.administrators import require_administrator
from attune.api.answers import Answer, Success
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.dead_letter_models import (
    DeadLetterResponse,
    DeadLetterSummary,
    ReplayedResponse,
    ReplayRequest,
)
from attune.api.description import refusals
from attune.api.pages import Page, PageOf, Wanted, page_of
from attune.api.parts import ApiParts
from attune.api.row_ids import RowId, checked, unknown
from attune.bus.outcome import Reason
from attune.dead_letters.model import LetterFilters
from attune.dead_letters.queries import count_letters, find_letter, list_letters
from attune.dead_letters.replay import Replayer
from attune.dead_letters.steps import delete_letter
from attune.kernel.ids import DeadLetterId
from attune.store.database import Tx

_NOUN: Final = "dead letter"
_WHO: Final = "Dead letters are seen and replayed"


async def wanted_filters(
    queue: Annotated[str | None, Query(description="The queue that they died in.")] = None,
    reason: Reason | None = None,
    message_type: str | None = None,
    replayed: Annotated[bool | None, Query(description="False: only those that wait.")] = None,
) -> LetterFilters:
    """What is empty is not asked for."""
    return LetterFilters(
        queue=queue or None, reason=reason, message_type=message_type or None, replayed=replayed
    )


def dead_letter_routes(parts: ApiParts) -> APIRouter:
    """Here, too, fixed words come before an id."""
    routes = router("/api/v1/dead-letters", "admin")
    replayer = Replayer(parts.health.bus, parts.database, parts.clock)
    _add_looking(routes, parts)
    _add_replaying(routes, replayer)
    _add_deleting(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("", summary="List dead letters, newest first", responses=refusals(403))
    async def list_all(
        rights: RightsOf,
        filters: Annotated[LetterFilters, Depends(wanted_filters)],
        wanted: PageOf,
    ) -> Page[DeadLetterSummary]:
        require_administrator(rights, _WHO)
        return await database.read(_page, filters, wanted)

    @routes.get("/{id}", summary="Show a dead letter with its body", responses=refusals(403, 404))
    async def get(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Answer[DeadLetterResponse]:
        require_administrator(rights, _WHO)
        found = await database.read(find_letter, DeadLetterId(checked(id, _NOUN)))
        if found is None:
            raise unknown(id, _NOUN)
        return Answer(data=DeadLetterResponse.of(found))


def _add_replaying(routes: APIRouter, replayer: Replayer) -> None:
    @routes.post("/replay", summary="Send many back, oldest first", responses=refusals(403))
    async def replay_many(
        rights: RightsOf, body: ReplayRequest | None = None
    ) -> Answer[ReplayedResponse]:
        require_administrator(rights, _WHO)
        asked = body or ReplayRequest()
        found = await replayer.replay_many(asked.filters, rights.caller.identity, asked.limit)
        return Answer(data=ReplayedResponse.model_validate(found))

    @routes.post(
        "/{id}/replay",
        summary="Send it back to the queue that it died in",
        responses=refusals(403, 404, 409),
    )
    async def replay(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Answer[DeadLetterSummary]:
        require_administrator(rights, _WHO)
        letter_id = DeadLetterId(checked(id, _NOUN))
        found = await replayer.replay(letter_id, rights.caller.identity)
        return Answer(data=DeadLetterSummary.model_validate(found))


def _add_deleting(routes: APIRouter, parts: ApiParts) -> None:
    @routes.delete("/{id}", summary="Let a dead letter go", responses=refusals(403, 404))
    async def delete(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Success:
        require_administrator(rights, _WHO)
        if not await parts.database.run(delete_letter, DeadLetterId(checked(id, _NOUN))):
            raise unknown(id, _NOUN)
        return Success(message=f"The dead letter {id} was deleted.")


async def _page(tx: Tx, filters: LetterFilters, wanted: Wanted) -> Page[DeadLetterSummary]:
    found = await list_letters(tx, filters, wanted.page_size, wanted.offset)
    shown = map(DeadLetterSummary.model_validate, found)
    return page_of(wanted, shown, total=await count_letters(tx, filters))
