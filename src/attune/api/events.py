"""/events: told, one or many, and found again."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.event_models import (
    CreateEventRequest,
    CreateEventsRequest,
    EventResponse,
    EventSummary,
)
from attune.api.newest import NewestOf, NewestPage, newest_page
from attune.api.parts import ApiParts
from attune.api.repeats import check_events
from attune.api.row_access import readable_by
from attune.api.row_ids import FilterId, RowId, checked, unknown
from attune.catalog.refs import pack_part
from attune.identities.constraints import Target
from attune.identities.rights import Rights
from attune.kernel.ids import EventId, RuleId, TriggerId
from attune.pipeline.events.model import Event, NewEvent
from attune.pipeline.events.queries import EventFilters, count_events, find_event, list_events
from attune.pipeline.events.steps import by_keys

_RefOrPack = Annotated[str | None, Query(description="A ref, or `pack.*`.")]
_Source = Annotated[str | None, Query(description="The id of a source, or its ref.")]


async def wanted_filters(
    trigger: FilterId = None,
    trigger_ref: _RefOrPack = None,
    rule_ref: _RefOrPack = None,
    source: _Source = None,
) -> EventFilters:
    return EventFilters(
        trigger=None if trigger is None else TriggerId(trigger),
        trigger_ref=trigger_ref or None,
        rule_ref=rule_ref or None,
        source=_source(source) if source else None,
    )


def event_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/events", "events")
    _add_telling(routes, parts)
    _add_looking(routes, parts)
    return routes


def _add_telling(routes: APIRouter, parts: ApiParts) -> None:
    @routes.post("", status_code=201, summary="Tell of an event", responses=refusals(403, 404, 409))
    async def create(rights: RightsOf, body: CreateEventRequest) -> Answer[EventResponse]:
        [event] = await _told(parts, rights, [body])
        return Answer(data=EventResponse.model_validate(event))

    @routes.post(
        "/many",
        status_code=201,
        summary="Tell of many events, all or none",
        responses=refusals(403, 404, 409),
    )
    async def create_many(
        rights: RightsOf, body: CreateEventsRequest
    ) -> Answer[list[EventResponse]]:
        events = await _told(parts, rights, body.events) if body.events else []
        return Answer(data=[EventResponse.model_validate(event) for event in events])


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("", summary="List events, newest first", responses=refusals(403))
    async def list_all(
        rights: RightsOf,
        filters: Annotated[EventFilters, Depends(wanted_filters)],
        wanted: NewestOf,
    ) -> NewestPage[EventSummary]:
        readable = readable_by(rights, "events")
        found = await database.read(list_events, filters, readable, wanted.window)
        total = None
        if wanted.include_total:
            total = await database.read(count_events, filters, readable)
        return newest_page(wanted, found, EventSummary.model_validate, total)

    @routes.get("/{id}", summary="Show an event", responses=refusals(403, 404))
    async def get_event(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> Answer[EventResponse]:
        readable = readable_by(rights, "events")
        found = await database.read(find_event, EventId(checked(id, "event")), readable)
        if found is None:
            raise unknown(id, "event")
        return Answer(data=EventResponse.model_validate(found))


async def _told(
    parts: ApiParts, rights: Rights, bodies: Sequence[CreateEventRequest]
) -> list[Event]:
    for ref in {body.trigger_ref for body in bodies}:
        rights.require("events", "create", Target(ref=ref, pack_ref=pack_part(ref)))
    new = [_new(body) for body in bodies]
    keys = {one.idempotency_key for one in new if one.idempotency_key}
    if not keys:
        return await parts.flow.record_events(new)
    check_events(rights, new, await parts.database.read(by_keys, keys))
    made = await parts.flow.record_events(new)
    seen = check_events(rights, new, {e.idempotency_key: e for e in made if e.idempotency_key})
    return [seen.get(event.idempotency_key or "", event) for event in made]


def _new(body: CreateEventRequest) -> NewEvent:
    return NewEvent(
        trigger_ref=body.trigger_ref,
        payload={} if body.payload is None else body.payload,
        config=body.config,
        rule=None if body.rule is None else RuleId(body.rule),
        idempotency_key=body.idempotency_key,
    )


def _source(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text
