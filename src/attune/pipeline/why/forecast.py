"""How long it will probably take, from what is in the way. Pure."""

from collections.abc import Sequence

from attune.pipeline.policies.model import Rate
from attune.pipeline.queues.estimate import Estimate, estimate
from attune.pipeline.why.model import Outlook


def forecast(outlook: Outlook, durations: Sequence[float]) -> Estimate | None:
    """The slowest of its limits counts; null where any of them cannot be foretold."""
    if outlook.opens_in is None:
        return None
    starts = [Estimate(0.0, 0.0)]
    for limit in outlook.limits:
        if limit.ahead is None:
            return None
        running = limit.running if outlook.opens_in == 0 else ()
        found = estimate(limit.ahead, limit.slots, durations, running)
        if found is None:
            return None
        starts.append(found)
    return Estimate(*(
        max(outlook.opens_in + max(each), outlook.at_least)
        for each in (
            [one.p50_seconds for one in starts],
            [one.p90_seconds for one in starts],
        )
    ))  # fmt: skip


def rate_seconds(rate: Rate, free: int, opens_in: float, ahead: int) -> float:
    """What a rate takes to let `ahead` others and this one start: `free` now, then as many in each window."""
    if ahead < free:
        return 0.0
    windows = (ahead - max(free, 0)) // rate.max_executions
    return opens_in + windows * rate.window_seconds
