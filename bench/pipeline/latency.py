"""From a submission to its end on an idle system, seen by whoever submitted it.

The end is pushed: one stream of changes (server-sent events) is open all the time. The same through
`client.executions.wait` opens a stream for each execution, and is told beside it.
"""

import asyncio
import math
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import httpx2
import msgspec

from attune.kernel.statuses import TERMINAL, ExecutionStatus
from bench.pipeline.installation import Installation
from bench.pipeline.loads import NOOP

_PATIENCE: Final = 30.0


class _Change(msgspec.Struct, frozen=True):
    entity_id: int
    status: ExecutionStatus


class Ends:
    """When each execution was seen to end, by `time.perf_counter`."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._news = asyncio.Condition()

    async def saw(self, execution: int) -> None:
        async with self._news:
            self._seen[execution] = time.perf_counter()
            self._news.notify_all()

    async def of(self, execution: int) -> float:
        """It may have been seen before its submission was answered."""
        async with asyncio.timeout(_PATIENCE), self._news:
            await self._news.wait_for(lambda: execution in self._seen)
            return self._seen.pop(execution)


@asynccontextmanager
async def _following(installation: Installation) -> AsyncIterator[Ends]:
    ends = Ends()
    headers = {"Authorization": f"Bearer {installation.token}", "Accept": "text/event-stream"}
    url = f"{installation.address}/api/v1/executions/stream"
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=_PATIENCE) as http,
        http.stream("GET", url, headers=headers) as response,
    ):
        response.raise_for_status()
        reading = asyncio.create_task(_read(response, ends))
        try:
            yield ends
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


async def _read(response: httpx2.Response, ends: Ends) -> None:
    async for event in httpx2.EventSource(response):
        try:
            change = msgspec.json.decode(event.data, type=_Change)
        except msgspec.MsgspecError:
            continue  # a greeting, or a sign of life
        if change.status in TERMINAL:
            await ends.saw(change.entity_id)


async def pushed(installation: Installation, count: int) -> Mapping[str, float]:
    times = []
    async with _following(installation) as ends:
        for _ in range(count):
            start = time.perf_counter()
            execution = await installation.client.executions.execute(NOOP)
            times.append(await ends.of(execution.id) - start)
    return percentiles(times)


async def waited(installation: Installation, count: int) -> Mapping[str, float]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        execution = await installation.client.executions.execute(NOOP)
        await installation.client.executions.wait(execution.id, timeout=_PATIENCE)
        times.append(time.perf_counter() - start)
    return percentiles(times)


def percentiles(seconds: Sequence[float]) -> Mapping[str, float]:
    """Milliseconds; the 99th by the nearest rank, as the peers are measured."""
    ordered = sorted(seconds)
    last = ordered[math.ceil(len(ordered) * 0.99) - 1]
    return {"p50": statistics.median(ordered) * 1e3, "p99": last * 1e3}
