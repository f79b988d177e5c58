"""A limit that follows its action (`limit: auto`), by what ended under it. Pure.

It rises in steps while all slots are used, work waits and the action is about as fast as with little load; it falls by a
share when too many fail or when the action has become slow. Between the two lies a band in which it stays, and what
was found to be too much is not tried again soon: so it settles instead of swinging.

Slowness is measured against a baseline, the fastest median known. A baseline that only ever fell would call an
action overloaded that has become slower by itself, and one that crept upwards would follow an overload wherever it
leads. So it is learned again in two ways only: now and then by halving the limit for one sample, and when lowering
the limit did not make the action faster, which shows that the load was not the cause.
"""

from math import isqrt
from typing import Final

import msgspec

_LEAST: Final = 10
_FAILED_SHARE: Final = 0.1
_NEAR: Final = 1.2
_FAR: Final = 1.5
_KEPT_SHARE: Final = 0.8
_TELLING_SHARE: Final = 0.7
_PATIENCE: Final = 20
_PROBE_EVERY: Final = 100


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What ended of what started under the present limit. Cancelled ones are not in it.

    `p50_seconds` is the median run time of those that completed, null where none did. `saturated`: all slots were
    used and work waited for one.
    """

    ended: int
    failed: int
    p50_seconds: float | None
    saturated: bool


class Cut(msgspec.Struct, frozen=True):
    """Where a fall for slowness began."""

    limit: int
    p50_seconds: float


class AdaptiveState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of an action. `searching` until the first sign of too much; steps are large until then.

    `wall` is a limit that was too much, `quiet` the samples since then. `probing` is the limit to go back to after the
    sample that is taken at half of it.
    """

    limit: int
    baseline: float | None = None
    searching: bool = True
    judged: int = 0
    quiet: int = 0
    wall: int | None = None
    cut: Cut | None = None
    probing: int | None = None


class Adjustment(msgspec.Struct, frozen=True):
    """`why` is one sentence for people, about a change as well as about none."""

    state: AdaptiveState
    limit: int
    why: str


def enough(limit: int) -> int:
    """How many must have ended before a limit is judged: one for each slot, or a median says nothing of the load."""
    return max(_LEAST, limit)


def at_limit(state: AdaptiveState, limit: int) -> AdaptiveState:
    """The state where somebody else has set the limit: what was under way with the old one is over."""
    if limit == state.limit:
        return state
    return _with(state, limit=limit, probing=None, cut=None)


def adjusted(state: AdaptiveState, sample: Sample, floor: int, ceiling: int) -> Adjustment:
    """The limit after this sample, never outside [floor, ceiling]."""
    bounded = min(max(state.limit, floor), ceiling)
    if bounded != state.limit:
        bounds = f"the policy keeps it between {floor} and {ceiling}"
        return _changed(at_limit(state, bounded), state.limit, bounds)
    needed = enough(state.limit)
    if sample.ended < needed:
        return _kept(state, f"{sample.ended} ended under it, and {needed} are needed to judge it")
    state = _with(state, judged=state.judged + 1, quiet=state.quiet + 1)
    if sample.failed > _FAILED_SHARE * sample.ended or sample.p50_seconds is None:
        rule = f"more than {_FAILED_SHARE:.0%} is too many"
        return _lowered(_with(state, cut=None), floor, f"{_counts(sample)}, and {rule}")
    if state.probing is not None:
        return _after_probe(state, state.probing, sample, sample.p50_seconds, ceiling)
    return _by_latency(state, sample, sample.p50_seconds, floor, ceiling)


def _after_probe(
    state: AdaptiveState, back: int, sample: Sample, p50: float, ceiling: int
) -> Adjustment:
    after = _with(state, limit=min(back, ceiling), baseline=p50, probing=None)
    seen = f"{_counts(sample)}, and p50 with little load is {_seconds(p50)}"
    return _changed(after, state.limit, seen)


def _by_latency(
    state: AdaptiveState, sample: Sample, p50: float, floor: int, ceiling: int
) -> Adjustment:
    baseline = p50 if state.baseline is None else min(state.baseline, p50)
    state = _with(state, baseline=baseline)
    compared = f"p50 {_seconds(p50)} is {{}} {{:g}} times {_seconds(baseline)}"
    if p50 > _FAR * baseline:
        seen = f"{_counts(sample)}, {compared.format('above', _FAR)}"
        return _too_slow(state, p50, floor, seen)
    state = _with(state, cut=None)
    if not sample.saturated:
        return _kept(state, f"{_counts(sample)}, and no work waits for it")
    if state.judged % _PROBE_EVERY == 0:
        return _probed(state, p50, floor)
    if p50 > _NEAR * baseline:
        seen = f"{_counts(sample)}, {compared.format('above', _NEAR)} and within {_FAR:g} times"
        return _kept(_with(state, searching=False), seen)
    seen = f"{_counts(sample)}, {compared.format('within', _NEAR)} and work waits"
    return _raised(state, ceiling, seen)


def _too_slow(state: AdaptiveState, p50: float, floor: int, seen: str) -> Adjustment:
    """Fewer at once make an overloaded action faster. If they did not, it is slower by itself."""
    began = state.cut or Cut(state.limit, p50)
    share = state.limit / began.limit
    telling = share <= _TELLING_SHARE or state.limit == floor
    if telling and p50 >= began.p50_seconds * (1 + share) / 2:
        after = _with(state, baseline=p50, cut=None)
        return _kept(after, f"{seen}, but a lower limit does not help: that is its speed now")
    return _lowered(_with(state, cut=began), floor, seen)


def _probed(state: AdaptiveState, p50: float, floor: int) -> Adjustment:
    half = max(floor, state.limit // 2)
    if half == state.limit:
        return _kept(_with(state, baseline=p50), "it is at its floor, and its p50 is the baseline")
    after = _with(state, limit=half, probing=state.limit)
    return _changed(after, state.limit, "for one sample, to learn its speed with little load")


def _raised(state: AdaptiveState, ceiling: int, seen: str) -> Adjustment:
    before = state.limit
    if before == ceiling:
        return _kept(state, f"{seen}, but that is its ceiling")
    target = min(before + (max(before // 2, 1) if state.searching else isqrt(before)), ceiling)
    if state.wall is not None and state.quiet < _PATIENCE and target >= state.wall:
        target = max(state.wall - 1, before)
        if target == before:
            return _kept(state, f"{seen}, but {state.wall} was too much a short while ago")
    return _changed(_with(state, limit=target), before, seen)


def _lowered(state: AdaptiveState, floor: int, seen: str) -> Adjustment:
    before = state.limit
    state = _with(state, wall=before, quiet=0, searching=False, probing=None)
    if before == floor:
        return _kept(state, f"{seen}, but that is its floor")
    target = max(min(int(before * _KEPT_SHARE), before - 1), floor)
    return _changed(_with(state, limit=target), before, seen)


def _changed(state: AdaptiveState, before: int, why: str) -> Adjustment:
    word = "raised" if state.limit > before else "lowered"
    return Adjustment(state, state.limit, f"{word} from {before} to {state.limit}: {why}")


def _kept(state: AdaptiveState, why: str) -> Adjustment:
    return Adjustment(state, state.limit, f"kept at {state.limit}: {why}")


def _counts(sample: Sample) -> str:
    return f"{sample.ended} ended, {sample.failed or 'none'} failed"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.3g} ms"


def _with(state: AdaptiveState, **fields: object) -> AdaptiveState:
    return msgspec.structs.replace(state, **fields)
