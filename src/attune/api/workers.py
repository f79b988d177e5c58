"""/workers: who is there, what each has to do, and whether it is given more."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends

from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.pages import Page, PageOf, page_of
from attune.api.parts import ApiParts
from attune.api.row_access import readable_by
from attune.api.row_ids import RowId, checked, unknown
from attune.api.worker_models import CordonRequest, WorkerSummary
from attune.identities.constraints import Target
from attune.identities.rights import Rights, refusal
from attune.kernel.ids import WorkerId
from attune.pipeline.workers.model import HealthState, Worker, WorkerStatus
from attune.pipeline.workers.queries import WorkerFilters, find_worker, list_workers
from attune.pipeline.workers.steps import cordon, get_worker, uncordon
from attune.store.database import Tx


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
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> WorkerSummary:
        return await _shown(parts, rights, id)


def _add_cordons(routes: APIRouter, parts: ApiParts) -> None:
    database, clock = parts.database, parts.clock

    @routes.post("/{id}/cordon", summary="Give it nothing more to do", responses=refusals(403, 404))
    async def set_cordon(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
        body: CordonRequest | None = None,
    ) -> WorkerSummary:
        reason = body.reason if body else None
        number = WorkerId(checked(id, "worker"))
        await database.run(_cordon, rights, number, reason, clock.now())
        return await _shown(parts, rights, id, "manage")

    @routes.post("/{id}/uncordon", summary="Give it work again", responses=refusals(403, 404))
    async def lift_cordon(
        id: RowId,  # noqa: A002 - the path's word
        rights: RightsOf,
    ) -> WorkerSummary:
        number = WorkerId(checked(id, "worker"))
        await database.run(_uncordon, rights, number, clock.now())
        await parts.flow.schedule()  # there is room again for what waits
        return await _shown(parts, rights, id, "manage")


async def _shown(
    parts: ApiParts, rights: Rights, number: int, action: str = "read"
) -> WorkerSummary:
    readable = readable_by(rights, "workers", action)
    worker_id = WorkerId(checked(number, "worker"))
    stale, now = parts.flow.terms.stale, parts.clock.now()
    found = await parts.database.read(find_worker, worker_id, readable, stale, now)
    if found is None:
        raise unknown(number, "worker")
    return WorkerSummary.of(found)


async def _cordon(
    tx: Tx, rights: Rights, worker: WorkerId, reason: str | None, now: datetime
) -> Worker:
    await _managed(tx, rights, worker)
    return await cordon(tx, worker, reason, rights.caller.identity, now)


async def _uncordon(tx: Tx, rights: Rights, worker: WorkerId, now: datetime) -> Worker:
    await _managed(tx, rights, worker)
    return await uncordon(tx, worker, now)


async def _managed(tx: Tx, rights: Rights, worker: WorkerId) -> None:
    if not rights.may_ever("workers", "manage"):
        raise refusal("workers", "manage")
    found = await get_worker(tx, worker)
    rights.require("workers", "manage", Target(id=found.id, ref=found.name))
