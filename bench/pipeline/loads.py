"""Work for an installation: so many executions, from the first submission to the last finish."""

import time
from collections.abc import Sequence
from typing import Any, Final

from attune.client.requests import ExecutionRequest
from bench.measure import Done
from bench.pipeline.books import completed, finished
from bench.pipeline.installation import Installation
from bench.pipeline.pack import TRIGGER

NOOP: Final = "core.noop"
LANES: Final = 1000
_AT_ONCE: Final = 1000
_POLICY: Final = "core.noop_limit"


async def run(installation: Installation, requests: Sequence[ExecutionRequest]) -> Done:
    """In bulk calls, one after the other."""
    total = await completed(installation.books) + len(requests)
    start = time.perf_counter()
    for first in range(0, len(requests), _AT_ONCE):
        some = requests[first : first + _AT_ONCE]
        await installation.client.executions.execute_many(some)
    end = await finished(installation.books, total)
    return Done(len(requests), end - start)


async def run_action(installation: Installation, action: str, count: int) -> Done:
    return await run(installation, [{"action_ref": action}] * count)


async def run_lanes(installation: Installation, count: int) -> Done:
    """Spread evenly over a thousand lanes, which its policy makes of the values of `lane`."""
    await limit(installation, 1, parameters=["lane"])
    return await run(
        installation,
        [{"action_ref": NOOP, "parameters": {"lane": number % LANES}} for number in range(count)],
    )


async def run_limited(installation: Installation, limit_: int, count: int) -> Done:
    await limit(installation, limit_)
    return await run_action(installation, NOOP, count)


async def run_events(installation: Installation, count: int) -> Done:
    """Told in bulk; a rule's condition holds for each, so each becomes an execution."""
    total = await completed(installation.books) + count
    start = time.perf_counter()
    for first in range(0, count, _AT_ONCE):
        some = range(first, min(first + _AT_ONCE, count))
        await installation.client.events.emit_many(
            [{"trigger_ref": TRIGGER, "payload": {"amount": 101 + number}} for number in some]
        )
    end = await finished(installation.books, total)
    return Done(count, end - start)


async def limit(installation: Installation, number: int, *, parameters: Sequence[str] = ()) -> None:
    """In effect when it returns."""
    concurrency = {"limit": number, "method": "enqueue", "parameters": list(parameters)}
    body: dict[str, Any] = {"concurrency": concurrency}
    await installation.call("PUT", f"/policies/{_POLICY}", body)


async def add_limit(installation: Installation) -> None:
    body = {
        "ref": _POLICY,
        "name": "A limit",
        "scope": {"type": "action", "action_ref": NOOP},
        "concurrency": {"limit": 10, "method": "enqueue"},
    }
    await installation.call("POST", "/policies", body)
