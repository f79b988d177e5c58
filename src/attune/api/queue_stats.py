"""/actions/{ref}/queue-stats: how much of an action runs, waits and is done. It tells of load, so it needs a right."""

from datetime import datetime, timedelta

from fastapi import APIRouter

from attune.api.access import permitted
from attune.api.action_queues import QUEUES
from attune.api.answers import Answer
from attune.api.authentication import RightsOf
from attune.api.bodies import router
from attune.api.description import refusals
from attune.api.fields import Key
from attune.api.parts import ApiParts
from attune.api.worker_models import QueueStatsResponse
from attune.identities.rights import Rights
from attune.pipeline.queues.queries import concurrency_of, queue_stats
from attune.store.database import Tx


def queue_stats_routes(parts: ApiParts) -> APIRouter:
    routes = router("/api/v1/actions", "actions")

    @routes.get("/{ref}/queue-stats", summary="Count its queue", responses=refusals(403, 404))
    async def show(ref: Key, rights: RightsOf) -> Answer[QueueStatsResponse]:
        stale, now = parts.flow.terms.stale, parts.clock.now()
        return Answer(data=await parts.database.read(_stats, rights, ref, stale, now))

    return routes


async def _stats(
    tx: Tx, rights: Rights, ref: str, stale: timedelta, now: datetime
) -> QueueStatsResponse:
    action = await permitted(tx, QUEUES, rights, ref, "read")
    found = await queue_stats(tx, action.ref)
    return QueueStatsResponse(
        action_id=action.id,
        action_ref=action.ref,
        queue_length=found.queue_length,
        active_count=found.active_count,
        max_concurrent=await concurrency_of(tx, action.ref, action.pack_ref, stale, now),
        total_enqueued=found.total_enqueued,
        total_completed=found.total_completed,
        oldest_enqueued_at=found.oldest_enqueued_at,
        last_updated=found.last_updated or action.updated,
    )
