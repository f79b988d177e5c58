"""`client.events`, `enforcements` and `workers`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar, Unpack

from attune.client.calls import Call, get_plain, post
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
    WorkerFilters,
)
from attune.client.worker_models import Worker

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


class Workers(Collection[W, Worker, Worker]):
    noun: ClassVar[str] = "workers"
    summary: ClassVar[type[Any]] = Worker
    detail: ClassVar[type[Any]] = Worker

    @Operation
    async def list(self, **filters: Unpack[WorkerFilters]) -> Page[Worker]:
        return await self._page(filters)

    @Listing
    async def iterate(self, **filters: Unpack[WorkerFilters]) -> AsyncGenerator[Worker, None]:
        async for item in self._all(filters):
            yield item

    @Operation
    async def cordon(self, id_: int, reason: str | None = None) -> Worker:
        """It gets no new work until it is uncordoned."""
        return await self._session.run(self._switch(id_, "cordon", {"reason": reason}))

    @Operation
    async def uncordon(self, id_: int) -> Worker:
        return await self._session.run(self._switch(id_, "uncordon", {}))

    def _one(self, ref: str | int) -> Call[Worker]:
        return get_plain(self._path(ref), Worker)

    def _switch(self, id_: int, word: str, body: Mapping[str, Any]) -> Call[Worker]:
        return Call("POST", self._path(id_, word), Worker, body=body)
