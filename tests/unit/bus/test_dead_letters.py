"""A dead letter can always be read, whatever its body and headers are."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from attune.bus.dead_letters import Death, read_attempts, read_dead_letter
from attune.bus.outcome import Reason
from attune.bus.topology import UNROUTED
from attune.kernel.envelope import encode
from tests.contract.bus.messages import enforcement

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
EARLIER = datetime(2026, 5, 1, 11, tzinfo=UTC)


def test_what_we_wrote_is_read_again() -> None:
    death = Death("executor.event.created", Reason.FAILED, "KeyError: 'x'", EARLIER)
    envelope = enforcement(1)
    letter = read_dead_letter("any.dlq", death.headers(attempts=3), encode(envelope), NOW)
    assert (letter.queue, letter.reason, letter.error, letter.died_at) == (
        "executor.event.created",
        Reason.FAILED,
        "KeyError: 'x'",
        EARLIER,
    )
    assert (letter.message_id, letter.message_type) == (
        envelope.message_id,
        "enforcement.created",
    )
    assert read_attempts(death.headers(attempts=3)) == 3


def test_the_newest_death_that_the_broker_tells_counts() -> None:
    deaths = [
        {"queue": "executor.event.created", "reason": "expired", "time": EARLIER},
        {"queue": "attune.retry.1000", "reason": "expired", "time": NOW},
    ]
    letter = read_dead_letter("x.dlq", {"x-death": deaths}, b"", NOW)
    assert (letter.queue, letter.reason) == ("executor.event.created", Reason.EXPIRED)
    assert letter.died_at == EARLIER


def test_our_word_stands_above_the_brokers() -> None:
    death = Death("a", Reason.BAD_MESSAGE, "broken", EARLIER)
    headers = {**death.headers(), "x-death": [{"queue": "attune.retry.100", "reason": "expired"}]}
    assert read_dead_letter("x.dlq", headers, b"", NOW).reason is Reason.BAD_MESSAGE


def test_what_no_queue_took_is_unrouted_even_after_a_delay() -> None:
    headers = {"x-death": [{"queue": "attune.retry.100", "reason": "expired"}]}
    assert read_dead_letter(UNROUTED, headers, b"", NOW).reason is Reason.UNROUTED


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
names = st.sampled_from(
    ["x-attune-reason", "x-attune-died-at", "x-attune-attempts", "x-attune-queue", "x-death"]
)


@given(st.binary() | st.text().map(str.encode), st.dictionaries(names | st.text(), values))
def test_reading_never_fails(body: bytes, headers: dict[str, object]) -> None:
    letter = read_dead_letter("some.dlq", headers, body, NOW)
    assert letter.body == body
    assert letter.died_at.tzinfo is not None
    assert read_attempts(headers) is not None
