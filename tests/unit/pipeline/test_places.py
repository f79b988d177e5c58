"""Which rows a page of an action's queues has."""

from hypothesis import given
from hypothesis import strategies as st

from attune.kernel.ids import LaneId
from attune.pipeline.queues.model import State
from attune.pipeline.queues.places import LaneCounts, group_values, stretches

COUNTS = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=6)


def lane(number: int, queued: int, ready: int, handed: int) -> LaneCounts:
    return LaneCounts(
        id=LaneId(number),
        group_key="",
        paused=False,
        reason=None,
        queue_length=queued,
        active_count=ready + handed,
        handed_count=handed,
    )


@given(
    counts=COUNTS,
    states=st.lists(st.sampled_from(list(State)), unique=True, min_size=1),
    limit=st.integers(1, 7),
    offset=st.integers(0, 40),
)
def test_a_page_has_the_rows_that_it_would_have_in_one_long_list(
    counts: list[tuple[int, int, int]], states: list[State], limit: int, offset: int
) -> None:
    lanes = [lane(number, *each) for number, each in enumerate(counts)]
    whole = [
        (one.id, state, place)
        for one in lanes
        for state in states
        for place in range(one.count(state))
    ]
    page = [
        (each.lane.id, each.state, each.skipped + number)
        for each in stretches(lanes, states, limit, offset)
        for number in range(each.count)
    ]
    assert page == whole[offset : offset + limit]


def test_a_group_is_read_from_its_key() -> None:
    assert group_values("") == {}
    assert group_values('{"host":"a","@identity":3}') == {"host": "a", "@identity": 3}
