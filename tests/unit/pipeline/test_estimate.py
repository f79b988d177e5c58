"""An estimate is exact where run times are equal, honest where they are not, and never moves the wrong way."""

import heapq
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attune.pipeline.queues.estimate import Estimate, estimate

seconds = st.floats(0, 1000, allow_subnormal=False)
durations = st.lists(seconds, min_size=1, max_size=200)
elapsed = st.lists(seconds, max_size=8)
places = st.integers(0, 600)
slots = st.integers(1, 12)


def known(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


def test_nothing_is_said_without_run_times_or_slots() -> None:
    assert estimate(3, 2, []) is None
    assert estimate(3, 0, [1.0]) is None


def test_without_a_limit_it_starts_at_once() -> None:
    assert estimate(3, None, []) == Estimate(0, 0)


def test_with_a_free_slot_and_nobody_ahead_it_starts_at_once() -> None:
    assert estimate(0, 3, [1.0, 9.0], running=[0.5, 0.2]) == Estimate(0, 0)


def test_the_next_in_line_waits_for_the_holder_that_ends_first() -> None:
    assert estimate(0, 2, [10.0] * 5, running=[4, 7]) == Estimate(3, 3)
    assert estimate(1, 2, [10.0] * 5, running=[4, 7]) == Estimate(6, 6)
    assert estimate(2, 2, [10.0] * 5, running=[4, 7]) == Estimate(13, 13)


def test_while_more_run_than_a_lowered_limit_allows_the_first_to_end_frees_no_slot() -> None:
    assert estimate(0, 1, [10.0] * 5, running=[9, 5, 2]) == Estimate(8, 8)


def test_one_that_outlasts_everything_known_is_not_expected_to_end_at_once() -> None:
    assert known(estimate(0, 1, [1.0, 2.0, 3.0], running=[500])).p50_seconds >= 1


def test_a_holder_that_has_run_long_is_expected_to_be_one_of_the_long_ones() -> None:
    mixed = [1.0] * 90 + [100.0] * 10
    assert known(estimate(0, 1, mixed, running=[0])).p50_seconds == 1
    assert known(estimate(0, 1, mixed, running=[40])).p50_seconds == 60


def test_of_many_holders_one_ends_soon_where_run_times_differ() -> None:
    spread = [float(each) for each in range(1, 101)]
    assert known(estimate(0, 20, spread, running=[0] * 20)).p90_seconds < 20


def test_a_rare_long_one_shows_in_the_pessimistic_number_only() -> None:
    found = known(estimate(1, 1, [1.0] * 80 + [60.0] * 20))
    assert (found.p50_seconds, found.p90_seconds) == (1, 60)


def test_far_back_it_is_the_mean_over_the_slots() -> None:
    found = known(estimate(1_000_000, 10, [1.0, 3.0]))
    assert found.p50_seconds == pytest.approx(200_000, rel=0.001)
    assert 0 < found.p90_seconds - found.p50_seconds < 1000


def test_a_place_far_back_is_answered_as_fast_as_one_in_front() -> None:
    spread = [float(each) for each in range(1, 201)]
    began = time.process_time()
    estimate(1_000_000, 50, spread, running=[1.0] * 50)
    assert time.process_time() - began < 0.5


def test_the_same_question_has_the_same_answer() -> None:
    asked = (40, 3, [0.5, 1.0, 7.0], [0.2, 0.9, 3.0])
    assert estimate(*asked) == estimate(*asked)


@settings(deadline=None)
@given(each=st.integers(1, 1000), ahead=places, count=slots, data=st.data())
def test_with_equal_run_times_it_is_exact(
    each: int, ahead: int, count: int, data: st.DataObject
) -> None:
    running = data.draw(st.lists(st.integers(0, each), max_size=count))
    free = [0] * (count - len(running)) + [each - one for one in running]
    heapq.heapify(free)
    for _ in range(ahead):
        heapq.heapreplace(free, free[0] + each)
    assert estimate(ahead, count, [float(each)] * 3, running) == Estimate(free[0], free[0])


@settings(deadline=None)
@given(durations, elapsed, places, st.integers(1, 60), slots)
def test_it_grows_with_those_ahead(
    known_durations: list[float], running: list[float], ahead: int, more: int, count: int
) -> None:
    near = known(estimate(ahead, count, known_durations, running))
    far = known(estimate(ahead + more, count, known_durations, running))
    assert near.p50_seconds <= far.p50_seconds + 1e-6
    assert near.p90_seconds <= far.p90_seconds + 1e-6


@settings(deadline=None)
@given(durations, elapsed, places, slots, st.integers(1, 12))
def test_it_shrinks_with_slots(
    known_durations: list[float], running: list[float], ahead: int, count: int, more: int
) -> None:
    few = known(estimate(ahead, count, known_durations, running))
    many = known(estimate(ahead, count + more, known_durations, running))
    assert many.p50_seconds <= few.p50_seconds + 1e-6
    assert many.p90_seconds <= few.p90_seconds + 1e-6


@settings(deadline=None)
@given(durations, elapsed, places, slots)
def test_the_median_is_never_above_the_pessimistic_number_and_neither_is_negative(
    known_durations: list[float], running: list[float], ahead: int, count: int
) -> None:
    found = known(estimate(ahead, count, known_durations, running))
    assert 0 <= found.p50_seconds <= found.p90_seconds
