"""What lets a call of a webhook in: the rate, which must remember, and forget."""

import pytest

from attune.api.webhook_checks import CallRates, caller_address
from attune.catalog.steps.webhooks import RateLimit
from attune.kernel.errors import Limited

LIMIT = RateLimit(enabled=True, requests=2, window_seconds=10)


def passes(rates: CallRates, now: float, key: str = "wh_1", address: str = "10.0.0.1") -> bool:
    try:
        rates.check(key, address, LIMIT, now)
    except Limited:
        return False
    return True


def test_the_window_slides_and_refused_calls_do_not_count() -> None:
    rates = CallRates()
    times = [0.0, 4.0, 5.0, 9.9, 10.0, 10.1, 14.0, 14.1]
    assert [passes(rates, now) for now in times] == [
        True, True, False, False, True, False, True, False,
    ]  # fmt: skip


def test_each_key_and_each_address_is_counted_apart() -> None:
    rates = CallRates()
    assert [passes(rates, 0.0) for _ in range(3)] == [True, True, False]
    assert passes(rates, 0.0, key="wh_2")
    assert passes(rates, 0.0, address="10.0.0.2")


def test_a_refusal_says_when_to_come_again() -> None:
    rates = CallRates()
    assert passes(rates, 3.0)
    assert passes(rates, 5.0)
    with pytest.raises(Limited) as refused:
        rates.check("wh_1", "10.0.0.1", LIMIT, 6.0)
    assert refused.value.fields["retry_after"] == 7.0


def test_made_up_addresses_fill_no_memory() -> None:
    rates = CallRates(remembered=3)
    for number in range(100):
        assert passes(rates, 0.0, address=str(number))
    assert len(rates) == 3
    assert [passes(rates, 0.0, address="99") for _ in range(2)] == [True, False]


def test_a_limit_that_is_off_remembers_nothing() -> None:
    rates = CallRates()
    for limit in (None, RateLimit(requests=1)):
        for _ in range(5):
            rates.check("wh_1", "10.0.0.1", limit, 0.0)
    assert len(rates) == 0


@pytest.mark.parametrize(
    ("headers", "peer", "address"),
    [
        ({}, "1.1.1.1", "1.1.1.1"),
        ({}, None, ""),
        ({"x-real-ip": " 2.2.2.2 "}, "1.1.1.1", "2.2.2.2"),
        ({"x-forwarded-for": "3.3.3.3 , 4.4.4.4", "x-real-ip": "2.2.2.2"}, None, "3.3.3.3"),
        ({"x-forwarded-for": "", "x-real-ip": "2.2.2.2"}, "1.1.1.1", "2.2.2.2"),
    ],
)
def test_the_address_is_the_first_that_is_told(
    headers: dict[str, str], peer: str | None, address: str
) -> None:
    assert caller_address(headers, peer) == address
