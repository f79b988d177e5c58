"""`client.workers`: who runs executions, what each has to do, and whether it is given more."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, ClassVar, Unpack

from attune.client.calls import Call, get_page, get_plain
from attune.client.collection import Collection
from attune.client.draining import until_drained
from attune.client.models import Page
from attune.client.operations import Listing, Operation, W
from attune.client.requests import Paging, WorkerFilters
from attune.client.worker_models import Worker, WorkerExecution, WorkerHistoryEntry


class Workers(Collection[W, Worker, Worker]):
    """A worker is named by its id or by its name; a name of digits alone, or with a slash, needs the id."""

    noun: ClassVar[str] = "workers"
    summary: ClassVar[type[Any]] = Worker
    detail: ClassVar[type[Any]] = Worker

    @Operation
    async def list(self, **filters: Unpack[WorkerFilters]) -> Page[Worker]:
        """By name."""
        return await self._page(filters)

    @Listing
    async def iterate(self, **filters: Unpack[WorkerFilters]) -> AsyncGenerator[Worker, None]:
        async for item in self._all(filters):
            yield item

    @Operation
    async def executions(self, ref: str | int, **paging: Unpack[Paging]) -> Page[WorkerExecution]:
        """What it has to do now, as far as you may see it, oldest first."""
        path = self._path(ref, "executions")
        return await self._session.run(get_page(path, WorkerExecution, paging))

    @Operation
    async def history(self, ref: str | int, **paging: Unpack[Paging]) -> Page[WorkerHistoryEntry]:
        """What became of it, newest first."""
        path = self._path(ref, "history")
        return await self._session.run(get_page(path, WorkerHistoryEntry, paging))

    @Listing
    async def iterate_history(self, ref: str | int) -> AsyncGenerator[WorkerHistoryEntry, None]:
        """All of it, newest first; what happens meanwhile moves nothing."""
        query: dict[str, int] = {"page_size": 100}
        while True:
            path = self._path(ref, "history")
            page = await self._session.run(get_page(path, WorkerHistoryEntry, query))
            for item in page:
                yield item
            if not page.pagination.has_next:
                return
            query["before"] = page.items[-1].id

    @Operation
    async def cordon(self, ref: str | int, reason: str | None = None) -> Worker:
        """It gets no new work until it is uncordoned; what it has goes on."""
        return await self._session.run(self._switch(ref, "cordon", reason))

    @Operation
    async def uncordon(self, ref: str | int, reason: str | None = None) -> Worker:
        return await self._session.run(self._switch(ref, "uncordon", reason))

    @Operation
    async def drain(self, ref: str | int, reason: str | None = None) -> Worker:
        """Cordon it in order to stop it; `wait_drained` tells when it has nothing left to do."""
        return await self._session.run(self._switch(ref, "drain", reason))

    @Operation
    async def wait_drained(
        self,
        ref: str | int,
        *,
        timeout: float | None = None,
        on_change: Callable[[Worker], None] = lambda _worker: None,
    ) -> Worker:
        """The worker once it has nothing left to do. `NotFinished` after `timeout` seconds, or if it is uncordoned."""
        return await until_drained(
            self._session, self._one(ref), timeout=timeout, on_change=on_change
        )

    def _one(self, ref: str | int) -> Call[Worker]:
        return get_plain(self._path(ref), Worker)

    def _switch(self, ref: str | int, word: str, reason: str | None) -> Call[Worker]:
        body = {} if reason is None else {"reason": reason}
        return Call("POST", self._path(ref, word), Worker, body=body)
