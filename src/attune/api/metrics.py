"""/metrics: the numbers of the whole installation, for Prometheus. Like /health it needs no token and names nobody.

Every API process shows the same numbers of what is there now, because they are read from the rows: scrape one of them,
or take the maximum over instances, never the sum. What happens (waiting times, ends, retries, what became of workers)
is counted from the start of the process; each process sees all of it, so there, too, one instance tells of everything.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from attune import __version__
from attune.api.description import open_refusals
from attune.api.parts import ApiParts
from attune.api.worker_metrics import WorkerMetrics
from attune.pipeline.queues.measures import QueueCounts, WaitTimes, queue_counts
from attune.telemetry.metrics import (
    CONTENT_TYPE,
    Family,
    Kind,
    Point,
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
    workers = WorkerMetrics(parts.database, parts.clock, parts.flow.terms.stale)

    @routes.get(
        "/metrics",
        summary="Numbers for Prometheus",
        response_class=_MetricsResponse,
        responses=open_refusals(503),
    )
    async def metrics() -> _MetricsResponse:
        families = [_INFO, *await workers.families()]
        if with_queue:
            await waits.look()
            counts = await parts.database.read(queue_counts)
            families += [*_counted(counts), _waited(waits), _latency(waits)]
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


def _latency(waits: WaitTimes) -> Family:
    """The waiting times of all priorities together."""
    totals: defaultdict[tuple[str, str | None], float] = defaultdict(float)
    for histogram in waits.histograms.values():
        for point in histogram.points({}):
            totals[point.suffix, point.labels.get("le")] += point.value
    return Family(
        "scheduling_latency_seconds",
        Kind.HISTOGRAM,
        "Seconds from requested to running, seen since this process started.",
        tuple(
            Point(value, {} if bound is None else {"le": bound}, suffix)
            for (suffix, bound), value in totals.items()
        ),
    )
