"""How long something may go on, and how much of what it says is kept."""

import asyncio
from typing import Any, Final

from attune.catalog.retrying import Limits
from attune.kernel.clock import Clock
from attune.worker.model import Stop

_MEGABYTE: Final = 1024 * 1024


def kept_bytes(limits: Limits, usual: int) -> int:
    """Of each stream. An action may have less kept than is usual, never more: it is the worker's memory."""
    if limits.output_mb is None:
        return usual
    return min(round(min(limits.output_mb, usual) * _MEGABYTE), usual)


async def until_ended(
    ended: asyncio.Future[Any], *, cancel: asyncio.Event, clock: Clock, timeout: float | None
) -> Stop | None:
    """None if it ended by itself, which wins over a cancel or a limit of the same moment."""
    # What ends at once, as most native actions do, needs nobody to watch it.
    await asyncio.sleep(0)
    if ended.done():
        return None
    asked = asyncio.ensure_future(cancel.wait())
    waits: set[asyncio.Future[Any]] = {ended, asked}
    if timeout is not None:
        waits.add(asyncio.ensure_future(clock.sleep(timeout)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits - {ended}:
            wait.cancel()
    if ended.done():
        return None
    return Stop.CANCELLED if cancel.is_set() else Stop.TIMEOUT
