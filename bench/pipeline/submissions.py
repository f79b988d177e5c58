"""How fast the API takes requests: the clock stops when the last one is acknowledged, and they end outside of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from bench.measure import Done
from bench.pipeline.books import completed, finished
from bench.pipeline.installation import Installation
from bench.pipeline.loads import NOOP

AT_ONCE: Final = 32

Submit = Callable[[Installation, int], Awaitable[None]]


async def submitted(installation: Installation, submit: Submit, count: int) -> Done:
    total = await completed(installation.books) + count
    start = time.perf_counter()
    await submit(installation, count)
    seconds = time.perf_counter() - start
    await finished(installation.books, total)
    return Done(count, seconds)


async def one_by_one(installation: Installation, count: int) -> None:
    for _ in range(count):
        await installation.client.executions.execute(NOOP)


async def many_at_once(installation: Installation, count: int) -> None:
    """So many clients, each with its next request as soon as it has its answer."""
    shares = [count // AT_ONCE + (number < count % AT_ONCE) for number in range(AT_ONCE)]
    await asyncio.gather(*(one_by_one(installation, share) for share in shares))


async def in_bulk(installation: Installation, count: int) -> None:
    await installation.client.executions.execute_many([{"action_ref": NOOP}] * count)
