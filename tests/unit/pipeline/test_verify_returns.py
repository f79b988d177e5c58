"""The checker of the decision log, for those who rest between two attempts: who left, who may come back, and to where."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.queues.decisions import (
    Came,
    Decision,
    Delayed,
    Dropped,
    Item,
    Joined,
    Reprioritized,
    Returned,
    decoded,
    encoded,
)
from attune.pipeline.queues.replay.lane import LaneReplay
from tests.unit.pipeline.lane_histories import START, Lane, Standing, broken, proved

UNTIL = START + timedelta(hours=1)


@dataclass
class RestingLane(Lane):
    """In which attempts fail and are followed by others. `resting` keep their place, or none (0)."""

    resting: list[Standing] = field(default_factory=list)

    def delay(self, index: int, keep: bool) -> Iterable[Item]:
        if self.holding:
            one = self.holding.pop(index % len(self.holding))
            yield Delayed(one.execution, one.sequence, one.band, UNTIL)
            self.resting.append(Standing(one.execution, one.sequence if keep else 0, one.band))

    def come_back(self, index: int) -> Iterable[Item]:
        if self.resting:
            one = self.resting.pop(index % len(self.resting))
            back = one if one.sequence else self._new(one.execution, one.band)
            self.waiting.append(back)
            yield Returned(back.execution, back.sequence, back.band, "turn")

    def drop(self, index: int) -> Iterable[Item]:
        if self.resting:
            one = self.resting.pop(index % len(self.resting))
            yield Dropped(one.execution, one.band)

    def reprioritize_resting(self, index: int, band: int) -> Iterable[Item]:
        if self.resting:
            one = self.resting[index % len(self.resting)]
            before, one.band = one.band, band
            yield Reprioritized(one.execution, one.sequence, before, band)

    def come_back_from_elsewhere(self, band: int) -> Iterable[Item]:
        one = self._new(next(self.executions), band)
        self.waiting.append(one)
        yield Returned(one.execution, one.sequence, one.band, "turn", LaneId(99))


BANDS = st.integers(0, 4)
INDEX = st.integers(0, 50)
LIMITS = st.one_of(st.none(), st.integers(1, 3))
WORDS = st.one_of(
    st.tuples(st.just("join"), BANDS, st.booleans()),
    st.tuples(st.just("join"), BANDS, st.booleans()),
    st.tuples(st.just("delay"), INDEX, st.booleans()),
    st.tuples(st.just("delay"), INDEX, st.booleans()),
    st.tuples(st.just("come_back"), INDEX),
    st.tuples(st.just("come_back"), INDEX),
    st.tuples(st.just("drop"), INDEX),
    st.tuples(st.just("reprioritize_resting"), INDEX, BANDS),
    st.tuples(st.just("come_back_from_elsewhere"), BANDS),
    st.tuples(st.just("put_back"), INDEX),
    st.tuples(st.just("end"), INDEX),
    st.tuples(st.just("go"), INDEX),
    st.tuples(st.just("come"), BANDS, st.booleans()),
    st.tuples(st.just("reprioritize"), INDEX, BANDS),
    st.tuples(st.just("pause")),
    st.tuples(st.just("resume")),
    st.tuples(st.just("change"), LIMITS),
)
STEPS = st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=5), st.booleans()), max_size=12)


@st.composite
def lanes(draw: st.DrawFn) -> RestingLane:
    lane = RestingLane(id=3, limit=draw(LIMITS))
    for keep in (True, False):  # of everything once, so that there is something to tamper with
        lane.do(("join", 2, keep), ("join", 3, False))
        lane.do(("delay", 0, keep))
        lane.do(("come_back" if keep else "drop", 0))
    for words, ageing in draw(STEPS):
        lane.do(*words, ageing=ageing)
    return lane


@given(lanes())
def test_an_honest_history_is_proved(lane: RestingLane) -> None:
    proof = proved(lane.rows)
    assert proof.violation is None
    assert proof.partial_lanes == 0


@given(lanes(), st.data())
def test_an_honest_history_holds_from_any_of_its_moments_on(
    lane: RestingLane, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(lane.rows)))
    assert proved(lane.rows[start:]).violation is None


@given(lanes())
def test_a_history_survives_its_way_through_the_database(lane: RestingLane) -> None:
    stored = [
        msgspec.structs.replace(row, items=decoded(msgspec.json.decode(encoded(list(row.items)))))
        for row in lane.rows
    ]
    assert stored == lane.rows


def test_those_who_came_back_or_were_dropped_are_forgotten() -> None:
    lane = RestingLane(id=3, limit=2)
    for _ in range(300):
        lane.do(("join", 2), ("join", 2))
        lane.do(("delay", 0, True), ("delay", 0, False))
        lane.do(("come_back", 0), ("drop", 0))
        lane.do(("end", 0))
    replay = LaneReplay(lane.rows[0])
    for row in lane.rows:
        assert replay.check(row) is None
    assert (replay.entered, replay._state.resting, replay.strangers) == ({}, {}, {})


Tampered = tuple[list[Decision], int]


def found(rows: list[Decision], kind: type[Item], data: st.DataObject) -> tuple[int, int, Any]:
    places = [
        (i, j, item)
        for i, row in enumerate(rows)
        for j, item in enumerate(row.items)
        if isinstance(item, kind)
    ]
    assume(places)
    return data.draw(st.sampled_from(places))


def changed(
    rows: list[Decision], at: tuple[int, int], items: Iterable[Item], **counts: int
) -> Tampered:
    """With other items in the place of one, and the counts as they should be then."""
    i, j = at
    row = rows[i]
    counts = {name: getattr(row, name) + change for name, change in counts.items()}
    told = (*row.items[:j], *items, *row.items[j + 1 :])
    after = msgspec.structs.replace(row, items=told, **counts)
    return [*rows[:i], after, *rows[i + 1 :]], row.number


def return_to_a_place_of_nobody(rows: list[Decision], data: st.DataObject) -> Tampered:
    """Not to the one that it left for its delay, which is its own to keep."""
    i, j, item = found(rows, Returned, data)
    told = [each for row in rows[: i + 1] for each in row.items]
    left = [e.sequence for e in told if isinstance(e, Delayed) and e.execution == item.execution]
    assume(item.sequence - 1 not in [0, *left])
    elsewhere = msgspec.structs.replace(item, sequence=item.sequence - 1)
    return changed(rows, (i, j), [elsewhere])


def return_twice(rows: list[Decision], data: st.DataObject) -> Tampered:
    i, j, item = found(rows, Returned, data)
    return changed(rows, (i, j), [item, item], queue_length=1)


def return_without_rest(rows: list[Decision], data: st.DataObject) -> Tampered:
    """As one that joins, but told as one that comes back."""
    i, j, item = found(rows, Joined, data)
    back = Returned(item.execution, item.sequence, item.band, "turn")
    if item.reason is None:
        return changed(rows, (i, j), [back], queue_length=1, active_after=-1)
    return changed(rows, (i, j), [back])


def return_in_another_band(rows: list[Decision], data: st.DataObject) -> Tampered:
    i, j, item = found(rows, Returned, data)
    assume(item.origin is None)
    return changed(rows, (i, j), [msgspec.structs.replace(item, band=(item.band + 1) % 5)])


def delay_twice(rows: list[Decision], data: st.DataObject) -> Tampered:
    i, j, item = found(rows, Delayed, data)
    return changed(rows, (i, j), [item, item], active_after=-1)


def delay_without_a_slot(rows: list[Decision], data: st.DataObject) -> Tampered:
    """One that has just begun to wait."""
    i, j, item = found(rows, Returned, data)
    rests = Delayed(item.execution, item.sequence, item.band, UNTIL)
    return changed(rows, (i, j), [item, rests], active_after=-1)


def drop_without_rest(rows: list[Decision], data: st.DataObject) -> Tampered:
    i, j, item = found(rows, Dropped, data)
    return changed(rows, (i, j), [item, item])


def join_while_it_rests(rows: list[Decision], data: st.DataObject) -> Tampered:
    i, j, item = found(rows, Delayed, data)
    joins = Joined(item.execution, item.sequence, item.band, "turn")
    return changed(rows, (i, j), [item, joins], queue_length=1)


def keep_the_slot_at_a_delay(rows: list[Decision], data: st.DataObject) -> Tampered:
    i, j, _item = found(rows, Delayed, data)
    return changed(rows, (i, j), [])


MUTATIONS: list[Callable[[list[Decision], st.DataObject], Tampered]] = [
    return_to_a_place_of_nobody,
    return_twice,
    return_without_rest,
    return_in_another_band,
    delay_twice,
    delay_without_a_slot,
    drop_without_rest,
    join_while_it_rests,
    keep_the_slot_at_a_delay,
]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
@settings(max_examples=40)
@given(lane=lanes(), data=st.data())
def test_a_history_that_was_tampered_with_is_found_out(
    mutate: Callable[[list[Decision], st.DataObject], Tampered],
    lane: RestingLane,
    data: st.DataObject,
) -> None:
    rows, number = mutate(lane.rows, data)
    assert broken(rows).number in (number, number + 1)


def two_lanes(*, rests: bool) -> list[Decision]:
    """An execution leaves one lane, for a delay or for good, and comes back to another; both are read on afterwards."""
    here, there = RestingLane(id=99, limit=1), RestingLane(id=3, limit=1)
    here.do(("join", 2, True))
    here.do(("delay", 0, True) if rests else ("end", 0))
    there.do(("refuse",))
    there.do(("refuse",))
    there.do(("come_back_from_elsewhere", 2))
    for lane in (here, there):
        for _ in range(3):
            lane.do(("refuse",))
    return [*here.rows, *there.rows]


def test_whoever_comes_back_to_another_lane_has_left_the_first_for_a_delay() -> None:
    assert proved(two_lanes(rests=True)).holds
    violation = broken(two_lanes(rests=False))
    assert (violation.lane, violation.execution) == (3, 1)
    assert violation.text == "Execution 1 returns to lane 3 from lane 99, where it did not rest."


def test_a_lane_that_was_read_too_early_is_not_held_against_anybody() -> None:
    rows = two_lanes(rests=True)
    early = [row for row in rows if row.lane == 3 or row.number == 1]
    assert proved(early).holds


def test_from_another_lane_nobody_comes_to_a_place_before_others() -> None:
    lane = RestingLane(id=3, limit=1)
    lane.do(("join", 2), ("join", 2))
    back = Returned(ExecutionId(7), 2, 2, "turn", LaneId(99))
    row = msgspec.structs.replace(lane.rows[0], number=2, active_before=1, items=(back,))
    assert (
        "from another lane to a place that is not behind all others"
        in broken([*lane.rows, row]).text
    )


def test_whoever_moved_on_meanwhile_may_come_back_by_a_change_of_groups() -> None:
    """It rests, returns to another lane, and is moved from there to the first."""
    here, there = RestingLane(id=99, limit=1), RestingLane(id=3, limit=1)
    here.do(("join", 2, True))
    here.do(("delay", 0, True))
    there.do(("refuse",))
    there.do(("come_back_from_elsewhere", 2))
    there.do(("go", 0))
    here.do(("refuse",))
    moved = here._new(1, 2)
    here.holding.append(moved)
    here.log(0, [Came(moved.execution, moved.sequence, moved.band, held=True)])
    for lane in (here, there):
        lane.do(("refuse",))
        lane.do(("refuse",))
    assert proved([*here.rows, *there.rows]).holds
