"""One lane: its rows taken in, item by item."""

from datetime import datetime

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.decisions import (
    Admitted,
    Came,
    Counted,
    Decision,
    Delayed,
    Dropped,
    Handed,
    Item,
    Joined,
    Left,
    LimitChanged,
    Paused,
    Refused,
    Reprioritized,
    Resumed,
    Returned,
    Went,
)
from attune.pipeline.queues.replay.admissions import admission_fault, at_once_fault
from attune.pipeline.queues.replay.faults import Fault, band_word, fault_of, limit_word
from attune.pipeline.queues.replay.line import Place
from attune.pipeline.queues.replay.rests import band_change_fault, drop_fault, return_fault
from attune.pipeline.queues.replay.state import LaneState


class LaneReplay:
    """`entered` tells since when those in the lane are there; `last_at` up to when the log was read.

    `strangers` came back from a delay for which they left another lane: which, and when.
    """

    def __init__(self, first: Decision) -> None:
        self.last_at = first.at
        self.entered: dict[ExecutionId, datetime] = {}
        self.strangers: dict[ExecutionId, tuple[LaneId, datetime]] = {}
        self._state = LaneState(first)
        self._state.paused = first.reason == GateName.PAUSE and not _switches_pause(first)
        self._left: dict[ExecutionId, int] = {}
        self._came_back_elsewhere: set[ExecutionId] = set()
        self.unseen = self._state.active + self._state.unseen_waiting

    def check(self, row: Decision) -> Fault | None:
        """Take a row in; null if it keeps to the rules."""
        state = self._state
        if row.active_before != state.active:
            return Fault(
                f"it says that {row.active_before} slots were held before it,"
                f" but the log up to there leaves {state.active}"
            )
        self.last_at = row.at
        self._left.clear()
        for item in row.items:
            if fault := self._take(item):
                return fault
        state.paused = state.paused or row.reason == GateName.PAUSE
        return self._miscounted(row)

    def let_rest(self, execution: ExecutionId) -> bool:
        """Whether it may have left this lane for a delay and come back elsewhere."""
        known = execution in self._state.resting or execution in self._came_back_elsewhere
        return known or self._state.is_partial

    def _take(self, item: Item) -> Fault | None:
        match item:
            case Joined() | Came():
                return self._enter(item)
            case Admitted():
                return self._admit(item)
            case Left() | Went():
                return self._leave(item)
            case Delayed() | Returned() | Dropped():
                return self._rest(item)
            case Reprioritized():
                return self._reprioritize(item)
            case Handed() | Counted():
                return _foreign(item)
            case _:
                return self._switch(item)

    def _switch(self, item: LimitChanged | Paused | Resumed | Refused) -> Fault | None:
        """Whoever had joined and is refused leaves by an item of its own."""
        if isinstance(item, LimitChanged):
            return self._change_limit(item)
        if not isinstance(item, Refused):
            self._state.paused = isinstance(item, Paused)
        return None

    def _rest(self, item: Delayed | Returned | Dropped) -> Fault | None:
        match item:
            case Delayed():
                return self._delay(item)
            case Returned():
                return self._return(item)
            case Dropped():
                fault = drop_fault(self._state, item)
                self._state.resting.pop(item.execution, None)
                return fault

    def _enter(self, item: Joined | Came) -> Fault | None:
        if fault := self._place_fault(item):
            return fault
        place = Place(item.execution, item.sequence, item.band)
        if not _enters_with_slot(item):
            self._state.line.add(place)
        elif isinstance(item, Joined) and (fault := at_once_fault(self._state, item)):
            return fault
        else:
            self._state.holding[item.execution] = place
        self.entered[item.execution] = self.last_at
        return None

    def _place_fault(self, item: Joined | Came) -> Fault | None:
        """A place is new, and behind all others; or it is the one that the execution has just given up."""
        state = self._state
        if state.place(item.execution) is not None:
            return fault_of(item, "enters a lane where it stands already: it is in two places")
        if state.resting.pop(item.execution, None) is not None:
            if isinstance(item, Joined):
                return fault_of(item, "joins the lane although it rests")
            self._came_back_elsewhere.add(item.execution)
        if self._left.get(item.execution) == item.sequence:
            return None
        if item.sequence <= state.last_sequence:
            last = f"{state.last_sequence}, which was given before"
            return fault_of(item, f"gets a sequence that is not above {last}")
        state.joined(item.sequence)
        return None

    def _admit(self, item: Admitted) -> Fault | None:
        state = self._state
        if fault := admission_fault(state, item):
            return fault
        if state.line.get(item.execution) is None:
            state.unseen_waiting -= 1
            state.saw(item.sequence)
            self.entered[item.execution] = self.last_at
        else:
            state.line.remove(item.execution)
        state.holding[item.execution] = Place(item.execution, item.sequence, item.band)
        return None

    def _leave(self, item: Left | Went) -> Fault | None:
        state = self._state
        place = state.place(item.execution)
        if place is None:
            return self._leave_unseen(item)
        if place.sequence != item.sequence:
            return fault_of(item, f"leaves but stands in the lane as sequence {place.sequence}")
        if item.held is not (item.execution in state.holding):
            return fault_of(item, _HOLDS_NONE if item.held else _KEEPS_ITS_SLOT)
        self._left[item.execution] = item.sequence
        del self.entered[item.execution]
        if item.held:
            del state.holding[item.execution]
        else:
            state.line.remove(item.execution)
        return None

    def _delay(self, item: Delayed) -> Fault | None:
        """It gives up its slot, and its place may wait for it; nobody joins in its name meanwhile."""
        fault = self._leave(Left(item.execution, item.sequence, item.band, held=True))
        if fault is None:
            del self._left[item.execution]
            place = Place(item.execution, item.sequence, item.band)
            self._state.resting[item.execution] = place
        return fault

    def _return(self, item: Returned) -> Fault | None:
        state = self._state
        if fault := return_fault(state, item):
            return fault
        rested = state.resting.pop(item.execution, None)
        if item.origin is not None:
            self.strangers[item.execution] = (item.origin, self.last_at)
            if rested is not None:
                self._came_back_elsewhere.add(item.execution)
        if rested is None and item.origin is None:  # a place that may be older than the log
            state.saw(item.sequence)
        elif item.sequence > state.last_sequence:
            state.joined(item.sequence)
        state.line.add(Place(item.execution, item.sequence, item.band))
        self.entered[item.execution] = self.last_at
        return None

    def _leave_unseen(self, item: Left | Went) -> Fault | None:
        state = self._state
        count = state.unseen_holding if item.held else state.unseen_waiting
        if count == 0 or not state.may_be_unseen(item.sequence):
            return fault_of(item, self._absence(item))
        if item.held:
            state.unseen_holding -= 1
        else:
            state.unseen_waiting -= 1
        self._left[item.execution] = item.sequence
        state.saw(item.sequence)
        return None

    def _absence(self, item: Left | Went) -> str:
        if not item.held:
            return "leaves a lane in which it does not wait"
        if item.sequence <= self._state.last_sequence:
            return "frees a slot a second time: it has left the lane before"
        return "frees a slot but never held one"

    def _reprioritize(self, item: Reprioritized) -> Fault | None:
        state = self._state
        if (resting := state.resting.get(item.execution)) is not None:
            state.resting[item.execution] = Place(item.execution, resting.sequence, item.after)
            return band_change_fault(resting, item)
        place = state.place(item.execution)
        if place is None:
            unseen = state.is_partial or state.unseen_waiting + state.unseen_holding > 0
            known = unseen and state.may_be_unseen(item.sequence)
            return None if known else fault_of(item, "gets another band but is not in the lane")
        if (place.sequence, place.band) != (item.sequence, item.before):
            there = f"sequence {place.sequence}, {band_word(place.band)}"
            return fault_of(item, f"gets another band but stands in the lane as {there}")
        moved = Place(item.execution, item.sequence, item.after)
        if item.execution in state.holding:
            state.holding[item.execution] = moved
        else:
            state.line.add(moved)
        return None

    def _change_limit(self, item: LimitChanged) -> Fault | None:
        limit = self._state.limit
        if item.before != limit:
            told = limit_word(item.before)
            return Fault(f"the limit is said to have been {told}, but was {limit_word(limit)}")
        self._state.limit = item.after
        return None

    def _miscounted(self, row: Decision) -> Fault | None:
        state = self._state
        if row.active_after != state.active:
            return Fault(
                f"it says that {row.active_after} slots are held after it, not {state.active}"
            )
        if row.queue_length != state.waiting:
            return Fault(f"it says that {row.queue_length} wait after it, not {state.waiting}")
        if row.max_concurrent != state.limit:
            limits = f"{limit_word(row.max_concurrent)}, not {limit_word(state.limit)}"
            return Fault(f"it says that the limit is {limits}, and no change of it is logged")
        return None


_HOLDS_NONE = "frees a slot but holds none: it waits"
_KEEPS_ITS_SLOT = "leaves as one that waits, but holds a slot, which stays taken"


def _foreign(item: Handed | Counted) -> Fault:
    if isinstance(item, Counted):
        return Fault("slots of a pool are counted in the log of a lane")
    text = f"execution {item.execution} is handed to a worker in the log of a lane"
    return Fault(text, item.execution)


def _enters_with_slot(item: Joined | Came) -> bool:
    return item.held if isinstance(item, Came) else item.reason is None


def _switches_pause(row: Decision) -> bool:
    return any(isinstance(item, Paused | Resumed) for item in row.items)
