"""Asking the broker for something on the way out, when it may be gone already."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def politely(request: Coroutine[Any, Any, Any], within: float) -> None:
    """Ask, and leave after `within` seconds whatever came of it.

    The driver's own time-outs cannot be relied on here: where it takes a cancellation for a lost connection,
    whoever waits for it waits for ever. So the request is left behind and not waited for.
    """
    asking = asyncio.ensure_future(request)
    try:
        await asyncio.wait({asking}, timeout=within)
    finally:
        if not asking.done():
            asking.cancel()
        asking.add_done_callback(_look)


def _look(asking: "asyncio.Future[Any]") -> None:
    """Its error is of no interest any more, but the loop complains about one that nobody has seen."""
    if not asking.cancelled():
        asking.exception()
