"""/metrics: the numbers of the whole installation, for Prometheus. Like /health it needs no token and names nobody.

Every API process shows the same counts, because they are read from the rows: scrape one of them, or take the
maximum over instances, never the sum. Waiting times are those that this process has seen since it started; each process
sees all of them, so there, too, one instance tells of everything.
"""

from collections.abc import Iterator
from typing import Final

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from attune import __version__
from attune.api.description import open_refusals
from attune.api.parts import ApiParts
from attune.pipeline.queues.measures import QueueCounts, WaitTimes, queue_counts
from attune.telemetry.metrics import (
    CONTENT_TYPE,
    Family,
    Kind,
    counter,
    exposition,
    gauge,
)

_INFO: Final = gauge("attune_info", "The version that answers.", 1, {"version": __version__})


class _MetricsResponse(PlainTextResponse):
    media_type = CONTENT_TYPE


def metrics_routes(parts: ApiParts, *, with_queue: bool = True) -> APIRouter:
    """`with_queue` is `executor.queue.enable_metrics`."""
    routes = APIRouter(tags=["health"])
    waits = WaitTimes(parts.database, parts.clock)

    @routes.get(
        "/metrics",
        summary="Numbers for Prometheus",
        response_class=_MetricsResponse,
        responses=open_refusals(503),
    )
    async def metrics() -> _MetricsResponse:
        families = [_INFO]
        if with_queue:
            await waits.look()
            counts = await parts.database.read(queue_counts)
            families += [*_counted(counts), _waited(waits)]
        return _MetricsResponse(exposition(families))

    return routes


def _counted(counts: QueueCounts) -> Iterator[Family]:
    yield gauge(
        "queue_depth", "Executions that wait, for a slot or for a worker, now.", counts.depth
    )
    yield gauge("queue_active", "Executions that workers have now.", counts.active)
    yield counter("queue_enqueue_total", "Executions that joined a queue.", counts.enqueued)
    yield counter(
        "queue_schedule_total",
        "Executions that left the queue, for a worker or because they ended in it.",
        counts.scheduled,
    )


def _waited(waits: WaitTimes) -> Family:
    points = tuple(
        point
        for priority, histogram in waits.histograms.items()
        for point in histogram.points({"priority": priority.word})
    )
    return Family(
        "queue_wait_time",
        Kind.HISTOGRAM,
        "Seconds from the request of an execution to its start, seen since this process started.",
        points,
    )
