"""Whether those who rest between two attempts come back as they may: once, to their own place or behind all others."""

from typing import Final

from attune.pipeline.queues.decisions import Dropped, Reprioritized, Returned
from attune.pipeline.queues.replay.faults import Fault, band_word, fault_of
from attune.pipeline.queues.replay.line import Place
from attune.pipeline.queues.replay.state import LaneState

_NOT_BEHIND: Final = "returns from another lane to a place that is not behind all others"
_NOT_ITS_OWN: Final = "returns to a place that is not behind all others, nor its own"


def return_fault(state: LaneState, item: Returned) -> Fault | None:
    if state.place(item.execution) is not None:
        return fault_of(item, "returns to a lane where it stands already: it is in two places")
    is_behind = item.sequence > state.last_sequence
    if item.origin is not None:  # who comes from another lane has no place here
        return None if is_behind else fault_of(item, _NOT_BEHIND)
    kept = state.resting.get(item.execution)
    if kept is None:
        return _unseen_fault(state, item)
    if kept.band != item.band:
        there = band_word(kept.band)
        return fault_of(item, f"returns to another band than {there}, in which it rests")
    return None if is_behind or kept.sequence == item.sequence else fault_of(item, _NOT_ITS_OWN)


def _unseen_fault(state: LaneState, item: Returned) -> Fault | None:
    """Of one that the log never saw resting: it may have begun to before the log did."""
    if not state.is_partial:
        return fault_of(item, "returns but does not rest: it never did, or has come back before")
    fits = item.sequence > state.last_sequence or state.may_be_unseen(item.sequence)
    return None if fits else fault_of(item, _NOT_ITS_OWN)


def drop_fault(state: LaneState, item: Dropped) -> Fault | None:
    if item.execution in state.resting or state.is_partial:
        return None
    text = f"execution {item.execution} is said to end while it rests, but does not rest"
    return Fault(text, item.execution)


def band_change_fault(place: Place, item: Reprioritized) -> Fault | None:
    """One that keeps no place has none to be told."""
    if item.sequence in {place.sequence, 0} and item.before == place.band:
        return None
    there = f"sequence {place.sequence}, {band_word(place.band)}"
    return fault_of(item, f"gets another band but rests as {there}")
