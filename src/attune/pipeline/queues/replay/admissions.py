"""Whether an execution may have been given its slot: it waits, the lane is open, and it is its turn."""

from collections.abc import Callable
from typing import Final

from attune.pipeline.queues.decisions import Admitted, Joined
from attune.pipeline.queues.replay.faults import Fault, band_word, fault_of, named, somebody
from attune.pipeline.queues.replay.state import LaneState

Check = Callable[[LaneState, Admitted], Fault | None]

_AGEING: Final = "ageing"
_RULES: Final = frozenset({"band", _AGEING})


def admission_fault(state: LaneState, item: Admitted) -> Fault | None:
    return next((fault for check in _CHECKS if (fault := check(state, item))), None)


def at_once_fault(state: LaneState, item: Joined) -> Fault | None:
    """Whoever joins with a slot found the lane open, and nobody waiting."""
    if state.waiting > 0:
        return fault_of(item, f"gets a slot at once, out of order: {state.waiting} wait before it")
    return _paused(state, item) or _above_limit(state, item)


def _not_waiting(state: LaneState, item: Admitted) -> Fault | None:
    place = state.line.get(item.execution)
    if item.execution in state.holding:
        return fault_of(item, "gets a slot although it holds one: it is in two places")
    if place is None:
        may_wait = state.may_be_unseen(item.sequence) and state.unseen_waiting > 0
        return None if may_wait else fault_of(item, "gets a slot but does not wait in the lane")
    if (place.sequence, place.band) == (item.sequence, item.band):
        return None
    there = f"sequence {place.sequence}, {band_word(place.band)}"
    return fault_of(item, f"gets a slot but waits in the lane as {there}")


def _paused(state: LaneState, item: Admitted | Joined) -> Fault | None:
    return fault_of(item, "gets a slot while the lane is paused") if state.paused else None


def _above_limit(state: LaneState, item: Admitted | Joined) -> Fault | None:
    if state.limit is None or state.active < state.limit:
        return None
    held = f"{state.active} held already"
    return fault_of(item, f"gets a slot above the limit of {state.limit}, with {held}")


def _out_of_order(state: LaneState, item: Admitted) -> Fault | None:
    """Ageing may raise one above higher bands, and never above the elders of its own."""
    ahead = state.line.first(item.band) if item.rule == _AGEING else state.line.head()
    if ahead is None or (ahead.band, ahead.sequence) >= (item.band, item.sequence):
        return None
    return fault_of(item, f"gets a slot out of order: {named(ahead)} waits ahead of it")


def _passes_without_rule(_state: LaneState, item: Admitted) -> Fault | None:
    if item.passed_over is None or item.rule in _RULES:
        return None
    passed = somebody(item.passed_over)
    return fault_of(item, f"passes over {passed}, and none of the known rules is given for it")


def _passes_another(state: LaneState, item: Admitted) -> Fault | None:
    """`passed_over` must be the oldest that waits on, if that one is older."""
    oldest = state.line.oldest()
    passed = None if oldest is None or oldest.sequence >= item.sequence else oldest.sequence
    itself = 1 if state.line.get(item.execution) is None else 0
    if state.unseen_waiting > itself:
        return _passes_unseen(state, item, passed)
    if item.passed_over == passed:
        return None
    told = somebody(item.passed_over)
    return fault_of(item, f"passes over {somebody(passed)}, but is said to pass over {told}")


def _passes_unseen(state: LaneState, item: Admitted, seen: int | None) -> Fault | None:
    """Some wait whose numbers the log never told. They came before all whom it saw joining."""
    told = item.passed_over
    if told is None:
        fits = seen is None and state.may_be_unseen(item.sequence)
    else:
        below = item.sequence - 1 if seen is None else seen
        fits = told <= below and state.may_be_unseen(told)
    if fits:
        return None
    return fault_of(item, f"is said to pass over {somebody(told)}, but older ones wait")


_CHECKS: Final[tuple[Check, ...]] = (
    _not_waiting,
    _paused,
    _above_limit,
    _out_of_order,
    _passes_without_rule,
    _passes_another,
)
