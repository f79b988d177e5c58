"""An adaptive limit settles where its action is busy and not yet slow, follows it, and says why it moves."""

import random
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attune.pipeline.policies.adaptive import (
    AdaptiveState,
    Adjustment,
    Sample,
    adjusted,
    at_limit,
    enough,
)

FLOOR, CEILING = 1, 100


def sample(
    ended: int = 20, failed: int = 0, p50: float | None = 0.2, saturated: bool = True
) -> Sample:
    return Sample(ended=ended, failed=failed, p50_seconds=p50, saturated=saturated)


def state(limit: int = 10, baseline: float | None = 0.2, **fields: object) -> AdaptiveState:
    known = {"searching": False, "judged": 1, **fields}
    return AdaptiveState(limit=limit, baseline=baseline, **known)  # type: ignore[arg-type]


def judge(now: AdaptiveState, seen: Sample) -> Adjustment:
    return adjusted(now, seen, FLOOR, CEILING)


class Service:
    """Runs `capacity` at once at full speed; more share it, and above twice as many are turned away."""

    def __init__(self, capacity: int, speed: float = 0.2, noise: float = 0.0) -> None:
        self.capacity = capacity
        self.speed = speed
        self._noise = noise
        self._random = random.Random(7)

    def run(self, at_once: int, demand: int = 10_000) -> Sample:
        busy = min(at_once, demand)
        ended = 2 * enough(at_once)
        failed = round(ended * max(0.0, 1 - 2 * self.capacity / busy))
        slower = max(1.0, busy / self.capacity) * self._random.uniform(
            1 - self._noise, 1 + self._noise
        )
        p50 = None if failed == ended else self.speed * slower
        return sample(ended, failed, p50, saturated=demand > at_once)


def limits(service: Service, now: AdaptiveState, demand: int = 10_000) -> Iterator[AdaptiveState]:
    while True:
        now = judge(now, service.run(now.limit, demand)).state
        yield now


def settled(service: Service, now: AdaptiveState, passes: int = 150) -> list[AdaptiveState]:
    """The states after so many passes, without those that only look."""
    steps = limits(service, now)
    for _ in range(passes):
        now = next(steps)
    return [each for each in (next(steps) for _ in range(250)) if each.probing is None]


class TestOneSample:
    def test_it_rises_while_the_action_is_fast_and_work_waits_and_says_so(self) -> None:
        found = judge(state(4), sample(p50=0.21))
        assert found.limit == 6
        assert found.why == (
            "raised from 4 to 6: 20 ended, none failed, p50 0.21 s is within 1.2 times 0.20 s"
            " and work waits"
        )

    def test_it_falls_by_a_share_when_too_many_fail(self) -> None:
        found = judge(state(), sample(failed=3))
        assert found.limit == 8
        assert found.why == (
            "lowered from 10 to 8: 20 ended, 3 failed, and more than 10% is too many"
        )

    def test_it_falls_when_the_action_has_become_slow(self) -> None:
        found = judge(state(), sample(p50=0.4))
        assert found.limit == 8
        assert "p50 0.40 s is above 1.5 times 0.20 s" in found.why

    def test_between_fast_and_slow_it_stays(self) -> None:
        found = judge(state(), sample(p50=0.26))
        assert (found.limit, found.why[:11]) == (10, "kept at 10:")

    def test_it_stays_where_no_work_waits_because_the_limit_is_not_what_holds_it(self) -> None:
        assert judge(state(), sample(saturated=False)).limit == 10

    def test_it_is_not_judged_by_a_few(self) -> None:
        now = state(50)
        found = judge(now, sample(ended=49, failed=49, p50=None))
        assert found.state is now
        assert found.why == "kept at 50: 49 ended under it, and 50 are needed to judge it"

    def test_where_everything_fails_there_is_no_median_and_it_falls(self) -> None:
        assert judge(state(), sample(failed=20, p50=None)).limit == 8

    def test_what_was_too_much_is_not_tried_again_soon(self) -> None:
        now = judge(state(5), sample(p50=0.4)).state
        assert now.limit == 4
        rejected = 0
        while (now := judge(now, sample()).state).limit < 5:
            rejected += 1
        assert rejected >= 15

    def test_bounds_that_the_policy_has_moved_hold_at_once_without_any_sample(self) -> None:
        nothing = sample(ended=0, p50=None, saturated=False)
        assert adjusted(state(10), nothing, 20, 30).why == (
            "raised from 10 to 20: the policy keeps it between 20 and 30"
        )
        assert adjusted(state(10), nothing, 1, 5).limit == 5

    def test_it_says_when_it_is_at_its_ceiling_or_floor(self) -> None:
        assert "ceiling" in adjusted(state(10), sample(), 1, 10).why
        assert "floor" in adjusted(state(10), sample(failed=9), 10, 20).why

    def test_a_limit_that_somebody_else_has_set_ends_a_look_that_was_under_way(self) -> None:
        looking = state(5, probing=10)
        assert at_limit(looking, 5) is looking
        assert at_limit(looking, 10) == state(10)


class TestTheBaseline:
    def test_an_action_that_is_slower_by_itself_gets_a_new_baseline_and_rises_again(self) -> None:
        """Lowering the limit twice made nothing faster, so the load was not the cause."""
        found = judge(state(20), sample(p50=0.4))
        for _ in range(2):
            found = judge(found.state, sample(p50=0.4))
        now = found.state
        assert now.baseline == 0.4
        assert found.why.endswith("but a lower limit does not help: that is its speed now")
        assert judge(now, sample(p50=0.4)).limit > now.limit

    def test_it_is_learned_again_now_and_then_at_half_the_limit_for_one_sample(self) -> None:
        looking = judge(state(12, judged=99), sample())
        assert looking.limit == 6
        assert "to learn its speed" in looking.why
        back = judge(looking.state, sample(p50=0.23))
        assert (back.limit, back.state.baseline) == (12, 0.23)

    def test_a_look_in_which_too_many_fail_does_not_go_back(self) -> None:
        looking = judge(state(12, judged=99), sample()).state
        found = judge(looking, sample(failed=10))
        assert (found.limit, found.state.probing) == (4, None)

    def test_at_the_floor_its_speed_is_the_baseline(self) -> None:
        assert judge(state(1, judged=99), sample(p50=0.27)).state.baseline == 0.27


@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 8, 13, 40, 60])
@pytest.mark.parametrize("start", [1, 10, 100])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_in_a_closed_loop_it_settles_around_the_capacity(
    capacity: int, start: int, noise: float
) -> None:
    found = settled(Service(capacity, noise=noise), AdaptiveState(limit=start))
    typical = sorted(each.limit for each in found)[len(found) // 2]
    assert 0.8 * capacity <= typical <= 1.5 * capacity
    assert all(0.5 * capacity <= each.limit <= 2 * capacity for each in found)


@pytest.mark.parametrize("capacity", [1, 5, 20])
def test_once_settled_it_does_not_swing(capacity: int) -> None:
    found = [each.limit for each in settled(Service(capacity), AdaptiveState(limit=1))]
    changes = sum(a != b for a, b in pairwise(found))
    assert changes <= len(found) / 8


@pytest.mark.parametrize(("before", "after"), [(10, 40), (40, 10), (30, 3), (3, 30)])
def test_it_follows_a_capacity_that_changes(before: int, after: int) -> None:
    service = Service(before)
    now = settled(service, AdaptiveState(limit=1))[-1]
    service.capacity = after
    found = settled(service, now)
    assert all(0.6 * after <= each.limit <= 2 * after for each in found)


def test_an_action_that_becomes_slower_by_itself_keeps_its_capacity() -> None:
    service = Service(20)
    now = settled(service, AdaptiveState(limit=1))[-1]
    service.speed *= 3
    assert all(14 <= each.limit <= 40 for each in settled(service, now))


def test_without_waiting_work_it_does_not_grow() -> None:
    steps = limits(Service(50), AdaptiveState(limit=4), demand=3)
    assert {next(steps).limit for _ in range(300)} == {4}


samples = st.builds(
    sample,
    ended=st.integers(0, 300),
    failed=st.just(0),
    p50=st.floats(1e-4, 1e4),
    saturated=st.booleans(),
).flatmap(
    lambda one: st.integers(0, one.ended).map(
        lambda failed: sample(
            one.ended, failed, None if failed == one.ended else one.p50_seconds, one.saturated
        )
    )
)


@settings(deadline=None)
@given(
    floor=st.integers(1, 20),
    width=st.integers(0, 200),
    start=st.integers(1, 300),
    seen=st.lists(samples, max_size=60),
)
def test_whatever_it_sees_it_stays_within_its_bounds_and_its_words_match_what_it_does(
    floor: int, width: int, start: int, seen: list[Sample]
) -> None:
    now = AdaptiveState(limit=start)
    for one in seen:
        found = adjusted(now, one, floor, floor + width)
        assert floor <= found.limit <= floor + width
        assert found.limit == found.state.limit
        assert found.why.startswith(_words(now.limit, found.limit))
        now = found.state


def _words(before: int, after: int) -> str:
    if before == after:
        return f"kept at {after}: "
    return f"{'raised' if after > before else 'lowered'} from {before} to {after}: "


def test_what_it_knows_survives_its_way_through_the_database() -> None:
    now = judge(state(12, judged=99), sample()).state
    assert msgspec.json.decode(msgspec.json.encode(now), type=AdaptiveState) == now
