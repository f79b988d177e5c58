"""How long something may go on, and how much of what it says is kept."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from attune.catalog.retrying import Limits
from attune.kernel.clock import Clock
from attune.worker.model import Stop

_MEGABYTE: Final = 1024 * 1024
# Seconds: too short for anybody to notice, long enough for a short action.
_MOMENT: Final = 0.005


def kept_bytes(limits: Limits, usual: int) -> int:
    """Of each stream. An action may have less kept than is usual, never more: it is the worker's memory."""
    if limits.output_mb is None:
        return usual
    return min(round(min(limits.output_mb, usual) * _MEGABYTE), usual)


async def until_ended(
    ended: asyncio.Future[Any],
    *,
    cancel: asyncio.Event,
    clock: Clock,
    timeout: float | None,
    lasts: Callable[[], None] | None = None,
) -> Stop | None:
    """None if it ended by itself, which wins over a cancel or a limit of the same moment.

    What ends within a moment, as most short actions do, needs nobody to watch it: a cancel is heeded, and `lasts`
    called, only after that.
    """
    began = clock.monotonic()
    if ended.done() or (not cancel.is_set() and await _ends_soon(ended)):
        return None
    if lasts is not None:
        lasts()
    waits: set[asyncio.Future[Any]] = {ended, asyncio.ensure_future(cancel.wait())}
    if timeout is not None:
        left = max(timeout - (clock.monotonic() - began), 0)
        waits.add(asyncio.ensure_future(clock.sleep(left)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits - {ended}:
            wait.cancel()
    if ended.done():
        return None
    return Stop.CANCELLED if cancel.is_set() else Stop.TIMEOUT


async def _ends_soon(ended: asyncio.Future[Any]) -> bool:
    """What `asyncio.wait` would do, without a task or a set for each run."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_ended: asyncio.Future[Any] | None = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = loop.call_later(_MOMENT, wake)
    ended.add_done_callback(wake)
    try:
        await waiter
    finally:
        timer.cancel()
        ended.remove_done_callback(wake)
    return ended.done()
