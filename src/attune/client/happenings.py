"""`client.events` and `client.enforcements`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from attune.client.calls import post
from attune.client.collection import Collection
from attune.client.models import (
    Enforcement,
    EnforcementSummary,
    Event,
    EventSummary,
    Page,
)
from attune.client.operations import Listing, Operation, W
from attune.client.requests import (
    EnforcementFilters,
    EventFilters,
    EventOptions,
    EventRequest,
)

_EVENTS = list[Event]


class Events(Collection[W, EventSummary, Event]):
    noun: ClassVar[str] = "events"
    summary: ClassVar[type[Any]] = EventSummary
    detail: ClassVar[type[Any]] = Event

    @Operation
    async def emit(
        self,
        trigger_ref: str,
        payload: Mapping[str, Any] | None = None,
        **options: Unpack[EventOptions],
    ) -> Event:
        """Tell of something that happened. With an `idempotency_key` it is told once, however often it is sent."""
        body = {"trigger_ref": trigger_ref, "payload": payload or {}, **options}
        repeatable = "idempotency_key" in options
        return await self._session.run(post(self._path(), Event, body, repeatable=repeatable))

    @Operation
    async def emit_many(self, events: Sequence[EventRequest]) -> Sequence[Event]:
        """All or none."""
        body = {"events": [{"payload": {}, **each} for each in events]}
        return await self._session.run(post(self._path("many"), _EVENTS, body))

    @Operation
    async def list(self, **filters: Unpack[EventFilters]) -> Page[EventSummary]:
        """Newest first."""
        return await self._page(filters)

    @Listing
    async def iterate(self, **filters: Unpack[EventFilters]) -> AsyncGenerator[EventSummary, None]:
        async for item in self._all(filters):
            yield item


class Enforcements(Collection[W, EnforcementSummary, Enforcement]):
    noun: ClassVar[str] = "enforcements"
    summary: ClassVar[type[Any]] = EnforcementSummary
    detail: ClassVar[type[Any]] = Enforcement

    @Operation
    async def list(self, **filters: Unpack[EnforcementFilters]) -> Page[EnforcementSummary]:
        """Newest first."""
        return await self._page(filters)

    @Listing
    async def iterate(
        self, **filters: Unpack[EnforcementFilters]
    ) -> AsyncGenerator[EnforcementSummary, None]:
        async for item in self._all(filters):
            yield item
