"""What may be said of retries and limits: each fault in its exact words, and nothing sound is refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.retry_rules import (
    limits_faults,
    limits_of,
    resolved,
    retry_faults,
    retry_of,
)
from attune.catalog.retrying import TEN_YEARS, Cause, Limits, Retry

BAD_RETRIES: list[tuple[Any, dict[str, str]]] = [
    (5, {"retry": "must be a mapping, not a number"}),
    ([], {"retry": "must be a mapping, not a list"}),
    ({"delay": -1}, {"retry.delay": "must be at least 0"}),
    ({"delay": "5"}, {"retry.delay": "must be a number, not a text"}),
    ({"delay": True}, {"retry.delay": "must be a number, not a truth value"}),
    ({"delay": float("nan")}, {"retry.delay": "must be at most 315360000"}),
    ({"max_delay": TEN_YEARS + 1}, {"retry.max_delay": "must be at most 315360000"}),
    ({"jitter": 1.1}, {"retry.jitter": "must be at most 1"}),
    ({"delya": 1}, {"retry.delya": "an unknown field; did you mean 'delay'?"}),
    (
        {"backoff": "exponentiall", "queue_place": "head"},
        {
            "retry.backoff": "unknown word 'exponentiall'; did you mean 'exponential'?",
            "retry.queue_place": "unknown word 'head'; known are keep, tail",
        },
    ),
    ({"on": "failed"}, {"retry.on": "must be a list, not a text"}),
    ({"on": []}, {"retry.on": "must name at least one of failed, timeout, not_started, worker_lost"}),
    ({"on": ["fail"]}, {"retry.on": "unknown word 'fail'; did you mean 'failed'?"}),
    ({"on": ["failed", "failed"]}, {"retry.on": "names 'failed' twice"}),
    ({"exit_codes": [0]}, {"retry.exit_codes": "must be at least 1"}),
    ({"exit_codes": [3, 256]}, {"retry.exit_codes": "must be at most 255, not 256"}),
    ({"exit_codes": [True]}, {"retry.exit_codes": "must be an integer, not a truth value"}),
    ({"exit_codes": [None]}, {"retry.exit_codes": "must not hold a null"}),
    ({"exit_codes": [7, 8, 7]}, {"retry.exit_codes": "names 7 twice"}),
    ({"matching": [5]}, {"retry.matching": "must be a list of texts, not of a number"}),
    ({"matching": [""]}, {"retry.matching": "a pattern has 1 to 2000 characters"}),
    ({"matching": ["x"] * 51}, {"retry.matching": "must not have more than 50"}),
    ({"matching": ["("]}, {"retry.matching": "the pattern '(' is not valid: missing ): ("}),
    (
        {"matching": ["fine", r"\pL{10}"]},
        {"retry.matching": r"the pattern '\\pL{10}' takes too long to match"},
    ),
    (
        {"on": ["timeout"], "exit_codes": [1], "matching": ["x"]},
        dict.fromkeys(
            ("retry.exit_codes", "retry.matching"),
            "only says which of 'failed' count, and 'on' does not name that",
        ),
    ),
]  # fmt: skip
BAD_LIMITS: list[tuple[Any, dict[str, str]]] = [
    ("much", {"limits": "must be a mapping, not a text"}),
    ({"cpu_seconds": 0}, {"limits.cpu_seconds": "must be above 0"}),
    ({"memory_mb": 0}, {"limits.memory_mb": "must be at least 1"}),
    ({"memory_mb": 2**31}, {"limits.memory_mb": "is too large"}),
    ({"open_files": "9"}, {"limits.open_files": "must be an integer, not a text"}),
    ({"processes": False}, {"limits.processes": "must be an integer, not a truth value"}),
    ({"output_mb": 100.5}, {"limits.output_mb": "must be at most 100"}),
    ({"memory": 1}, {"limits.memory": "an unknown field; did you mean 'memory_mb'?"}),
]


@pytest.mark.parametrize(("written", "faults"), BAD_RETRIES)
def test_a_fault_of_a_retry_names_its_field_and_its_rule(
    written: Any, faults: dict[str, str]
) -> None:
    assert retry_faults(written) == faults


@pytest.mark.parametrize(("written", "faults"), BAD_LIMITS)
def test_a_fault_of_a_limit_names_its_field_and_its_rule(
    written: Any, faults: dict[str, str]
) -> None:
    assert limits_faults(written) == faults


def test_the_place_is_where_it_stands_in_a_body() -> None:
    assert list(retry_faults({"delay": -1}, "executions.3.retry")) == ["executions.3.retry.delay"]


def test_a_sound_one_is_read_and_a_null_is_the_same_as_nothing() -> None:
    written = {"delay": 5, "backoff": "linear", "max_delay": None, "on": ["timeout"], "jitter": 0.5}
    assert retry_faults(written) == {}
    expected = Retry(delay=5, backoff="linear", on=(Cause.TIMEOUT,), jitter=0.5)
    assert retry_of(written) == retry_of(expected) == expected
    assert limits_of({"memory_mb": 64, "output_mb": None}) == Limits(memory_mb=64)
    assert (retry_of(None), limits_of(None)) == (None, None)
    assert retry_of({"backoff": "exponential"}) == Retry(backoff="exponential")


def test_resolved_shows_every_field_with_what_counts() -> None:
    assert resolved(Retry(delay=3, on=(Cause.FAILED,))) == {
        "delay": 3, "backoff": "constant", "max_delay": None, "jitter": 0, "on": ("failed",),
        "exit_codes": (), "matching": (), "queue_place": "keep",
    }  # fmt: skip


words = st.sampled_from(["failed", "timeout", "linear", "tail", "(", "a+", "", "worker_lost"])
values = st.recursive(
    words | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*Retry.__struct_fields__, "dealy"]), values))
def test_whatever_is_written_as_a_retry_is_a_fault_or_can_be_kept(written: dict[str, Any]) -> None:
    if not retry_faults(written):
        kept = msgspec.json.encode(retry_of(written))
        assert msgspec.json.decode(kept, type=Retry) == retry_of(written)


@given(st.dictionaries(st.sampled_from([*Limits.__struct_fields__, "memory"]), values))
def test_whatever_is_written_as_limits_is_a_fault_or_can_be_kept(written: dict[str, Any]) -> None:
    if not limits_faults(written):
        kept = msgspec.json.encode(limits_of(written))
        assert msgspec.json.decode(kept, type=Limits) == limits_of(written)
