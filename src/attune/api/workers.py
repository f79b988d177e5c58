"""/workers: who is there, what each has to do, and whether it is given more."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path

from attune.api import execution_access
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.newest import NewestOf, NewestPage, newest_page
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.api.row_access import readable_by
from attune.api.row_ids import checked
from attune.api.worker_models import (
    CordonRequest,
    WorkerExecution,
    WorkerHistoryEntry,
    WorkerSummary,
)
from attune.identities.constraints import Target
from attune.identities.model import Caller
from attune.identities.rights import Rights, refusal
from attune.identities.row_conditions import ALWAYS
from attune.kernel.errors import NotFound
from attune.kernel.ids import WorkerId
from attune.pipeline.workers.cordons import lift_cordon, put_cordon
from attune.pipeline.workers.details import count_history, held_executions, history_of
from attune.pipeline.workers.model import HealthState, Worker, WorkerStatus
from attune.pipeline.workers.queries import SeenWorker, WorkerFilters, find_worker, list_workers
from attune.store.database import Tx

Key = Annotated[str, Path(max_length=255, description="The id, or the name if it is not a number.")]
Switch = Callable[[Tx, Worker, str | None, Caller, datetime], Awaitable[None]]


async def wanted_filters(
    role: str | None = None,
    status: WorkerStatus | None = None,
    cordoned: bool | None = None,
    health_state: HealthState | None = None,
) -> WorkerFilters:
    return WorkerFilters(
        role=role or None, status=status, cordoned=cordoned, health_state=health_state
    )


def worker_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/workers", "workers")
    _add_looking(routes, parts)
    _add_details(routes, parts)
    _add_cordons(routes, parts)
    return routes


def _add_looking(routes: APIRouter, parts: ApiParts) -> None:
    database, clock, stale = parts.database, parts.clock, parts.flow.terms.stale

    @routes.get("", summary="List workers by name", responses=refusals(403))
    async def list_all(
        rights: RightsOf,
        filters: Annotated[WorkerFilters, Depends(wanted_filters)],
        wanted: PageOf,
    ) -> Page[WorkerSummary]:
        readable = readable_by(rights, "workers")
        found = await database.read(list_workers, filters, readable, stale, clock.now())
        shown = found[wanted.offset : wanted.offset + wanted.page_size]
        return page_of(wanted, map(WorkerSummary.of, shown), total=len(found))

    @routes.get("/{id}", summary="Show a worker", responses=refusals(403, 404))
    async def get(
        id: Key,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> WorkerSummary:
        return WorkerSummary.of(await _seen(parts, rights, id))


def _add_details(routes: APIRouter, parts: ApiParts) -> None:
    database = parts.database

    @routes.get("/{id}/executions", summary="List what it has now", responses=refusals(403, 404))
    async def list_executions(
        id: Key,  # noqa: A002 - the path's word
        rights: RightsOf,
        wanted: PageOf,
    ) -> Page[WorkerExecution]:
        worker = (await _seen(parts, rights, id)).worker.id
        readable = execution_access.readable_by(rights)
        found = await database.read(
            held_executions, worker, readable, wanted.page_size, wanted.offset
        )
        return page_of(wanted, map(WorkerExecution.model_validate, found.items), total=found.total)

    @routes.get(
        "/{id}/history",
        summary="List what became of it, newest first",
        responses=refusals(403, 404),
    )
    async def list_history(
        id: Key,  # noqa: A002 - the path's word
        rights: RightsOf,
        wanted: NewestOf,
    ) -> NewestPage[WorkerHistoryEntry]:
        worker = (await _seen(parts, rights, id)).worker.id
        found = await database.read(history_of, worker, wanted.window)
        total = await database.read(count_history, worker) if wanted.include_total else None
        return newest_page(wanted, found, WorkerHistoryEntry.model_validate, total)


def _add_cordons(routes: APIRouter, parts: ApiParts) -> None:
    @routes.post("/{id}/cordon", summary="Give it nothing more to do", responses=refusals(403, 404))
    async def set_cordon(
        id: Key,  # noqa: A002 - the path's word
        rights: RightsOf,
        body: CordonRequest | None = None,
    ) -> WorkerSummary:
        return await _switched(parts, rights, id, put_cordon, body)

    @routes.post(
        "/{id}/drain",
        summary="Cordon it; it is drained once its load is 0",
        responses=refusals(403, 404),
    )
    async def drain(
        id: Key,  # noqa: A002 - the path's word
        rights: RightsOf,
        body: CordonRequest | None = None,
    ) -> WorkerSummary:
        return await _switched(parts, rights, id, put_cordon, body)

    @routes.post("/{id}/uncordon", summary="Give it work again", responses=refusals(403, 404))
    async def uncordon(
        id: Key,  # noqa: A002 - the path's word
        rights: RightsOf,
        body: CordonRequest | None = None,
    ) -> WorkerSummary:
        shown = await _switched(parts, rights, id, lift_cordon, body)
        await parts.flow.schedule()  # there is room again for what waits
        return shown


async def _switched(
    parts: ApiParts, rights: Rights, key: str, switch: Switch, body: CordonRequest | None
) -> WorkerSummary:
    reason = body.reason if body else None
    await parts.database.run(_switch, parts, rights, key, switch, reason)
    return WorkerSummary.of(await _seen(parts, rights, key, "manage"))


async def _switch(
    tx: Tx, parts: ApiParts, rights: Rights, key: str, switch: Switch, reason: str | None
) -> None:
    """The worker is looked for without regard to rights: whoever may manage others is told that he lacks this one."""
    if not rights.may_ever("workers", "manage"):
        raise refusal("workers", "manage")
    now = parts.clock.now()
    found = await find_worker(tx, _key(key), ALWAYS, parts.flow.terms.stale, now)
    if found is None:
        raise _unknown(key)
    worker = found.worker
    rights.require("workers", "manage", Target(id=worker.id, ref=worker.name))
    await switch(tx, worker, reason, rights.caller, now)


async def _seen(parts: ApiParts, rights: Rights, key: str, action: str = "read") -> SeenWorker:
    readable = readable_by(rights, "workers", action)
    stale, now = parts.flow.terms.stale, parts.clock.now()
    found = await parts.database.read(find_worker, _key(key), readable, stale, now)
    if found is None:
        raise _unknown(key)
    return found


def _key(text: str) -> WorkerId | str:
    """All digits are an id, always: what a path means must not change with the names that come."""
    number = text.isascii() and text.isdigit()
    return WorkerId(checked(int(text), "worker")) if number else text


def _unknown(key: str) -> NotFound:
    return NotFound(f"There is no worker {key}.", id=key)
