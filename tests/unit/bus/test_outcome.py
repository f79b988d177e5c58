"""The decision about a message after its handler ran."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.bus.outcome import Ack, Bury, Reason, Retry, RetryPolicy, decide, describe
from attune.kernel.errors import BadMessage, Contention, DatabaseUnavailable, InvalidInput

POLICY = RetryPolicy(first=1.0, factor=2.0, ceiling=60.0, max_retries=10)


def test_success_is_acknowledged() -> None:
    assert decide(None, 0, POLICY) == Ack()
    assert decide(None, 99, POLICY) == Ack()


def test_the_default_policy_grows_from_a_second_to_a_minute() -> None:
    delays = [RetryPolicy().delay(count) for count in range(9)]
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert RetryPolicy().max_retries == 10


@pytest.mark.parametrize(
    "error",
    [DatabaseUnavailable("away"), Contention("busy"), TimeoutError(), ConnectionError(), OSError()],
)
def test_what_may_heal_is_retried_until_the_retries_are_used_up(error: Exception) -> None:
    assert decide(error, 0, POLICY) == Retry(1.0, describe(error))
    assert decide(error, 9, POLICY) == Retry(60.0, describe(error))
    for count in (10, 11, -1):
        last = decide(error, count, POLICY)
        assert last == Bury(Reason.RETRIES_EXHAUSTED, describe(error))


@pytest.mark.parametrize(
    "error", [InvalidInput("no"), BadMessage("bad"), KeyError("x"), Exception()]
)
def test_anything_else_is_buried_at_once(error: Exception) -> None:
    outcome = decide(error, 0, POLICY)
    assert isinstance(outcome, Bury)
    assert outcome.reason is Reason.FAILED


def test_without_retries_the_first_failure_is_the_last() -> None:
    assert isinstance(decide(OSError(), 0, RetryPolicy(max_retries=0)), Bury)


@given(
    count=st.integers(-(10**12), 10**12),
    factor=st.floats(1.0, 100.0),
    ceiling=st.floats(1.0, 1e6),
    retries=st.integers(0, 200),
)
def test_every_delay_is_a_rung_of_the_ladder_and_none_exceeds_the_ceiling(
    count: int, factor: float, ceiling: float, retries: int
) -> None:
    policy = RetryPolicy(first=1.0, factor=factor, ceiling=ceiling, max_retries=retries)
    delay = policy.delay(count)
    assert delay in policy.delays()
    assert 0 < delay <= ceiling


def test_an_error_is_described_in_a_bounded_number_of_words() -> None:
    assert describe(KeyError("x")) == "KeyError: 'x'"
    assert describe(ValueError()) == "ValueError"
    assert describe(InvalidInput("The name is taken.")) == "The name is taken."
    assert len(describe(ValueError("x" * 10_000))) == 2000
    assert describe(ValueError("file \udcff")) == "ValueError: file ?"
