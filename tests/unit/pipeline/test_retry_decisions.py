"""When a failed attempt is followed by another."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.retrying import TEN_YEARS, Cause, Retries, Retry
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.decide import delay_before, pause_before_next
from attune.pipeline.completion.model import Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = ExecutionId(1)


def verdict(cause: Cause = Cause.FAILED, **fields: Any) -> Verdict:
    usual: dict[str, Any] = {"status": ExecutionStatus.FAILED, "error": "", "attempt": 1}
    return Verdict(execution=ONE, cause=cause, **{**usual, **fields})


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ("constant", [3, 3, 3, 3, 3]),
        ("linear", [3, 6, 9, 12, 12]),
        ("exponential", [3, 6, 12, 12, 12]),
    ],
)
def test_delays_grow_as_they_are_told_up_to_the_longest(backoff: Any, delays: list[float]) -> None:
    how = Retry(delay=3, backoff=backoff, max_delay=12)
    assert [delay_before(how, number, ONE) for number in range(1, 6)] == delays


@given(
    delay=st.floats(0, TEN_YEARS),
    number=st.integers(1, 10**6),
    jitter=st.floats(0, 1),
    backoff=st.sampled_from(["constant", "linear", "exponential"]),
    execution=st.integers(1, 2**62).map(ExecutionId),
)
def test_a_delay_is_never_negative_never_above_the_longest_and_always_the_same(
    delay: float, number: int, jitter: float, backoff: Any, execution: ExecutionId
) -> None:
    how = Retry(delay=delay, backoff=backoff, jitter=jitter)
    plain = delay_before(Retry(delay=delay, backoff=backoff), number, execution)
    found = delay_before(how, number, execution)
    assert plain * (1 - jitter) * 0.999 <= found <= plain <= TEN_YEARS
    assert found == delay_before(how, number, execution)
    assert NOW + timedelta(seconds=found) > datetime.min.replace(tzinfo=UTC)


def test_jitter_spreads_executions_that_failed_together() -> None:
    how = Retry(delay=100, jitter=0.5)
    delays = [delay_before(how, 1, ExecutionId(each)) for each in range(1000)]
    assert min(delays) < 55
    assert max(delays) > 95
    assert 70 < sum(delays) / 1000 < 80


@pytest.mark.parametrize("cause", list(Cause))
def test_it_ends_when_its_retries_are_used_up(cause: Cause) -> None:
    retry = Retries(max_retries=2)
    assert pause_before_next(retry, 1, verdict(cause), NOW) is not None
    assert pause_before_next(retry, 2, verdict(cause), NOW) is None


@pytest.mark.parametrize("cause", list(Cause))
def test_causes_that_are_not_named_are_the_end(cause: Cause) -> None:
    retry = Retries(max_retries=2, how=Retry(on=tuple(each for each in Cause if each is not cause)))
    assert pause_before_next(retry, 0, verdict(cause), NOW) is None


def test_chosen_errors_are_of_failures_alone() -> None:
    retry = Retries(max_retries=1, how=Retry(exit_codes=(75,)))
    assert pause_before_next(retry, 0, verdict(exit_code=1), NOW) is None
    assert pause_before_next(retry, 0, verdict(Cause.TIMEOUT), NOW) is not None


def test_a_pattern_is_searched_in_the_end_of_the_error_and_cannot_take_long() -> None:
    retry = Retries(max_retries=1, how=Retry(matching=("(a+)+$",)))
    assert pause_before_next(retry, 0, verdict(error="a" * 10**6 + "b"), NOW) is None
    assert pause_before_next(retry, 0, verdict(error="b" * 10**6 + "a"), NOW) is not None


def test_an_error_that_is_no_text_matches_nothing() -> None:
    retry = Retries(max_retries=1, how=Retry(matching=("x",)))
    assert pause_before_next(retry, 0, verdict(error="x\ud800"), NOW) is None
