"""Waiting on a condition, with a bound, in place of sleeping and hoping."""

import time
from collections.abc import Callable


class NotInTime(AssertionError):
    """A condition did not come true within its bound."""


def wait_until(
    condition: Callable[[], bool],
    *,
    timeout: float = 10.0,
    what: str = "the condition",
    interval: float = 0.02,
) -> None:
    """Return as soon as the condition holds; seconds throughout."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise NotInTime(f"{what}: not within {timeout:g} s")
        time.sleep(interval)
