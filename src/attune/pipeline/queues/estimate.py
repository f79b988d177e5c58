"""How long an execution will probably wait: recent run times, replayed many times over. Pure.

Each replay lets the holders finish and the executions ahead run one after the other on the slots that come free,
with run times drawn from the recent ones; the answer is the median and the 90th percentile over the replays. The
draws are the same in every call: the same question has the same answer, and an execution never seems to wait longer
because one ahead of it is gone or because there is one slot more.

Beyond `_REPLAYED` executions ahead, those behind are added by the law of large numbers (mean and normal spread),
so a place far back costs no more than one in front.
"""

import heapq
import random
from collections.abc import Sequence
from math import ceil, sqrt
from statistics import fmean, pstdev
from typing import Final

import msgspec

_REPLAYS: Final = 60
_REPLAYED: Final = 256
_Z90: Final = 1.2816


class Estimate(msgspec.Struct, frozen=True):
    """Seconds from now until it starts."""

    p50_seconds: float
    p90_seconds: float


def estimate(
    ahead: int, slots: int | None, durations: Sequence[float], running: Sequence[float] = ()
) -> Estimate | None:
    """`ahead` wait before it, `running` is for how long each holder of a slot has run, all in seconds.

    Null where nothing can be said: no slots at all, or no run times. Without a limit (slots null) it starts at once.
    """
    if slots is None:
        return Estimate(0.0, 0.0)
    if slots <= 0 or not durations:
        return None
    known = sorted(max(each, 0.0) for each in durations)
    if known[0] == known[-1]:
        return _steady(ahead, slots, known[0], running)
    near = min(ahead, _REPLAYED)
    starts = sorted(_replay(number, near, slots, known, running) for number in range(_REPLAYS))
    mean = (ahead - near) * fmean(known) / slots
    spread = _Z90 * pstdev(known) * (sqrt(ahead) - sqrt(near)) / slots
    return Estimate(_quantile(starts, 0.5) + mean, _quantile(starts, 0.9) + mean + spread)


def _steady(ahead: int, slots: int, each: float, running: Sequence[float]) -> Estimate:
    """Where all take equally long the answer is exact: the slots come free in the same order in every round."""
    rest = [each - elapsed if elapsed <= each else each for elapsed in running]
    free = _free_at(rest, slots)
    start = free[ahead % slots] + each * (ahead // slots)
    return Estimate(start, start)


def _replay(
    number: int, ahead: int, slots: int, known: Sequence[float], running: Sequence[float]
) -> float:
    """When the one behind `ahead` others starts, in this replay. Holders and others draw from sources of their own."""
    of_holders = random.Random(2 * number)  # noqa: S311 - the same draws in every call
    of_others = random.Random(2 * number + 1)  # noqa: S311
    free = _free_at([_rest(known, elapsed, of_holders) for elapsed in running], slots)
    for _ in range(ahead):
        heapq.heapreplace(free, free[0] + _drawn(known, of_others))
    return free[0]


def _free_at(rest: Sequence[float], slots: int) -> list[float]:
    """When each slot comes free, soonest first. While more run than there are slots, those that end first free none."""
    ends = sorted(rest)
    return [0.0] * (slots - len(ends)) + ends[max(len(ends) - slots, 0) :]


def _rest(known: Sequence[float], elapsed: float, source: random.Random) -> float:
    """How much longer one runs that has run for so long: as those did that took at least as long.

    Of one that outlasts everything known, all that can be said is that it takes a run time more.
    """
    longer = [each for each in known if each >= elapsed]
    return _drawn(longer, source) - elapsed if longer else _drawn(known, source)


def _drawn(known: Sequence[float], source: random.Random) -> float:
    return known[int(source.random() * len(known))]


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[ceil(share * len(ordered)) - 1]
