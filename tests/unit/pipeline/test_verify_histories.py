"""Random histories of a lane: what is honest is proved, and whatever was tampered with is found where it stands."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.queues.decisions import (
    Admitted,
    Decision,
    Item,
    Joined,
    Left,
    Paused,
    Resumed,
    decoded,
    encoded,
)
from tests.unit.pipeline.lane_histories import Lane, broken, proved

BANDS = st.integers(0, 4)
INDEX = st.integers(0, 50)
LIMITS = st.one_of(st.none(), st.integers(0, 3))
WORDS = st.one_of(
    st.tuples(st.just("join"), BANDS, st.booleans()),
    st.tuples(st.just("join"), BANDS, st.booleans()),
    st.tuples(st.just("join"), BANDS, st.booleans()),
    st.tuples(st.just("put_back"), INDEX),
    st.tuples(st.just("end"), INDEX),
    st.tuples(st.just("end"), INDEX),
    st.tuples(st.just("go"), INDEX),
    st.tuples(st.just("come"), BANDS, st.booleans()),
    st.tuples(st.just("reprioritize"), INDEX, BANDS),
    st.tuples(st.just("refuse")),
    st.tuples(st.just("pause")),
    st.tuples(st.just("resume")),
    st.tuples(st.just("change"), LIMITS),
)
STEPS = st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=6), st.booleans()), max_size=25)


@st.composite
def lanes(draw: st.DrawFn) -> Lane:
    lane = Lane(id=3, limit=draw(LIMITS))
    for words, ageing in draw(STEPS):
        lane.do(*words, ageing=ageing)
    return lane


def changed(rows: Sequence[Decision], index: int, **fields: Any) -> list[Decision]:
    row = msgspec.structs.replace(rows[index], **fields)
    return [*rows[:index], row, *rows[index + 1 :]]


@given(lanes())
def test_an_honest_history_is_proved_and_counted(lane: Lane) -> None:
    proof = proved(lane.rows)
    items = [item for row in lane.rows for item in row.items]
    assert proof.violation is None
    assert (proof.decisions, proof.partial_lanes) == (len(lane.rows), 0)
    at_once = sum(isinstance(item, Joined) and item.reason is None for item in items)
    assert proof.admissions == at_once + sum(isinstance(item, Admitted) for item in items)
    assert proof.executions == sum(isinstance(item, Joined) for item in items)
    assert (proof.first_at, proof.last_at) == (
        (lane.rows[0].at, lane.rows[-1].at) if lane.rows else (None, None)
    )


@given(lanes(), st.data())
def test_an_honest_history_holds_from_any_of_its_moments_on(
    lane: Lane, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(lane.rows)))
    assert proved(lane.rows[start:]).violation is None


@given(lanes(), lanes(), st.randoms())
def test_lanes_are_told_apart_in_whatever_order_their_rows_come(
    one: Lane, other: Lane, source: Any
) -> None:
    histories = [list(one.rows), _renamed(other)]
    rows: list[Decision] = []
    while any(histories):
        rows.append(source.choice([each for each in histories if each]).pop(0))
    proof = proved(rows)
    assert proof.holds
    assert proof.lanes == sum(bool(lane.rows) for lane in (one, other))


def _renamed(lane: Lane) -> list[Decision]:
    """As another lane, with executions of its own."""
    return [
        msgspec.structs.replace(row, lane=LaneId(9), items=tuple(map(_of_another, row.items)))
        for row in lane.rows
    ]


def _of_another(item: Item) -> Item:
    known = getattr(item, "execution", None)
    return item if known is None else msgspec.structs.replace(item, execution=known + 10_000)


@given(lanes())
def test_a_history_survives_its_way_through_the_database(lane: Lane) -> None:
    stored = [
        msgspec.structs.replace(row, items=decoded(msgspec.json.decode(encoded(list(row.items)))))
        for row in lane.rows
    ]
    assert stored == lane.rows


Mutation = Callable[[list[Decision], st.DataObject], tuple[list[Decision], int]]


def _with(rows: list[Decision], kind: type[Item], data: st.DataObject) -> int:
    """The index of some row that has such an item."""
    found = [i for i, row in enumerate(rows) if any(isinstance(x, kind) for x in row.items)]
    assume(found)
    return data.draw(st.sampled_from(found))


def drop_a_row(rows: list[Decision], data: st.DataObject) -> tuple[list[Decision], int]:
    assume(len(rows) > 2)
    index = data.draw(st.integers(1, len(rows) - 2))
    return [*rows[:index], *rows[index + 1 :]], rows[index].number


def swap_two_admissions(rows: list[Decision], data: st.DataObject) -> tuple[list[Decision], int]:
    places = [
        (i, j)
        for i, row in enumerate(rows)
        for j, item in enumerate(row.items)
        if isinstance(item, Admitted) and item.rule != "ageing"
    ]
    assume(len(places) > 1)
    first, second = sorted(data.draw(st.permutations(places))[:2])
    one, other = rows[first[0]].items[first[1]], rows[second[0]].items[second[1]]
    assume(one != other)  # of one that was put back, they are the same
    for (i, j), item in ((first, other), (second, one)):
        items = [*rows[i].items[:j], item, *rows[i].items[j + 1 :]]
        rows = changed(rows, i, items=tuple(items))
    return rows, rows[first[0]].number


def raise_active_after(rows: list[Decision], data: st.DataObject) -> tuple[list[Decision], int]:
    assume(rows)
    index = data.draw(st.integers(0, len(rows) - 1))
    return changed(rows, index, active_after=rows[index].active_after + 1), rows[index].number


def duplicate_a_left(rows: list[Decision], data: st.DataObject) -> tuple[list[Decision], int]:
    index = _with(rows, Left, data)
    row = rows[index]
    twice = next(item for item in row.items if isinstance(item, Left))
    counted = row.active_after - 1 if twice.held else row.active_after
    waiting = row.queue_length if twice.held else row.queue_length - 1
    place = row.items.index(twice)
    items = (*row.items[:place], twice, *row.items[place:])
    return changed(rows, index, items=items, active_after=counted, queue_length=waiting), row.number


def _admit_one_more(rows: list[Decision], index: int, data: st.DataObject) -> list[Decision]:
    """As if one more had been let in, with every count as it should be then."""
    row = rows[index]
    one, sequence = ExecutionId(99_999), 1_000_000
    at_once = (Joined(one, sequence, 0),)
    in_turn = (Joined(one, sequence, 0, "turn"), Admitted(one, sequence, 0))
    items = (*row.items, *data.draw(st.sampled_from([at_once, in_turn])))
    return changed(rows, index, items=items, active_after=row.active_after + 1)


def admit_above_the_limit(rows: list[Decision], data: st.DataObject) -> tuple[list[Decision], int]:
    full = [
        i
        for i, row in enumerate(rows)
        if row.max_concurrent is not None and row.active_after >= row.max_concurrent
    ]
    assume(full)
    index = data.draw(st.sampled_from(full))
    return _admit_one_more(rows, index, data), rows[index].number


def admit_while_paused(rows: list[Decision], data: st.DataObject) -> tuple[list[Decision], int]:
    index = _with(rows, Paused, data)
    last = [x for x in rows[index].items if isinstance(x, Paused | Resumed)][-1]
    assume(isinstance(last, Paused))
    return _admit_one_more(rows, index, data), rows[index].number


@pytest.mark.parametrize(
    "mutate",
    [
        drop_a_row,
        swap_two_admissions,
        raise_active_after,
        duplicate_a_left,
        admit_above_the_limit,
        admit_while_paused,
    ],
    ids=lambda mutate: mutate.__name__,
)
@given(lane=lanes(), data=st.data())
def test_a_history_that_was_tampered_with_is_found_out_where_it_was(
    mutate: Mutation, lane: Lane, data: st.DataObject
) -> None:
    rows, number = mutate(lane.rows, data)
    assert broken(rows).number in (number, number + 1)
