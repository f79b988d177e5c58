"""`client.queues` and `client.settings`: who waits and why, and what binds everybody."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final, TypeVar, Unpack

import msgspec

from attune.client.calls import Call, get, get_page, path_of, post, put
from attune.client.models import Page
from attune.client.operations import Listing, Namespace, Operation, W
from attune.client.queue_models import (
    ClearedQueue,
    Queue,
    QueueEntry,
    QueueState,
    Reprioritized,
    RuntimeSettings,
    SystemQueue,
    Why,
)
from attune.client.requests import EntryFilters, QueueFilters, SettingChanges

T = TypeVar("T")
Group = Mapping[str, Any] | None

_LARGEST_PAGE: Final = 100
_QUEUES: Final = path_of("admin", "queues")
_SETTINGS: Final = path_of("admin", "settings")


class Queues(Namespace[W]):
    """A `group` is the values that its executions share, as the list of queues shows them."""

    @Operation
    async def list(self, **filters: Unpack[QueueFilters]) -> Page[Queue]:
        """By action and group."""
        return await self._session.run(get_page(_QUEUES, Queue, filters))

    @Listing
    async def iterate(self, **filters: Unpack[QueueFilters]) -> AsyncGenerator[Queue, None]:
        async for each in self._all(_QUEUES, Queue, filters, lambda queue: queue.id):
            yield each

    @Operation
    async def entries(self, ref: str | int, **filters: Unpack[EntryFilters]) -> Page[QueueEntry]:
        """Who waits for an action, in the order in which they will go."""
        query = _with_group(filters)
        return await self._session.run(get_page(_queue_of(ref), QueueEntry, query))

    @Listing
    async def iterate_entries(
        self, ref: str | int, **filters: Unpack[EntryFilters]
    ) -> AsyncGenerator[QueueEntry, None]:
        """One that moves to another page meanwhile is told of once, or not at all if it moved forward."""
        query = _with_group(filters)
        async for each in self._all(_queue_of(ref), QueueEntry, query, lambda one: one.execution):
            yield each

    @Operation
    async def pause(self, ref: str | int, *, group: Group = None) -> QueueState:
        """What runs goes on; nothing more gets a slot until it is resumed."""
        return await self._session.run(_change(ref, "pause", QueueState, group))

    @Operation
    async def resume(self, ref: str | int, *, group: Group = None) -> QueueState:
        return await self._session.run(_change(ref, "resume", QueueState, group))

    @Operation
    async def clear(self, ref: str | int, *, group: Group = None) -> ClearedQueue:
        """What waits ends as cancelled; what workers have goes on."""
        return await self._session.run(_change(ref, "clear", ClearedQueue, group))

    @Operation
    async def reprioritize(self, id_: int, priority: str) -> Reprioritized:
        """Move an execution that waits to another band; `Conflict` if it no longer does."""
        path = path_of("admin", "executions", id_, "priority")
        return await self._session.run(put(path, Reprioritized, {"priority": priority}))

    @Operation
    async def why(self, id_: int) -> Why:
        """What an execution waits for now, and what it has waited for."""
        return await self._session.run(get(path_of("executions", id_, "why"), Why))

    @Operation
    async def status(self) -> SystemQueue:
        """All queues together."""
        return await self._session.run(get(path_of("admin", "executions", "queue"), SystemQueue))

    async def _all(
        self, path: str, kind: type[T], filters: Mapping[str, Any], key: Callable[[T], int]
    ) -> AsyncGenerator[T, None]:
        wanted = {"page_size": _LARGEST_PAGE, **filters, "page": filters.get("page", 1)}
        before: set[int] = set()
        while True:
            page = await self._session.run(get_page(path, kind, wanted))
            for item in page:
                if key(item) not in before:
                    yield item
            if not page.pagination.has_next:
                return
            before = {key(item) for item in page}
            wanted["page"] += 1


class Settings(Namespace[W]):
    @Operation
    async def get(self) -> RuntimeSettings:
        return await self._session.run(get(_SETTINGS, RuntimeSettings))

    @Operation
    async def update(self, **changes: Unpack[SettingChanges]) -> RuntimeSettings:
        """What is not named stays as it is; None brings back the default."""
        return await self._session.run(put(_SETTINGS, RuntimeSettings, changes))


def _queue_of(ref: str | int) -> str:
    return path_of("actions", ref, "queue")


def _change(ref: str | int, word: str, kind: type[T], group: Group) -> Call[T]:
    body = {} if group is None else {"group": group}
    return post(path_of("actions", ref, "queue", word), kind, body)


def _with_group(filters: Mapping[str, Any]) -> dict[str, Any]:
    group = filters.get("group")
    if group is None:
        return {name: value for name, value in filters.items() if name != "group"}
    return {**filters, "group": msgspec.json.encode(group).decode()}
