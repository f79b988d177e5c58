"""Trouble with the broker in words for people, without the password."""

import asyncio
import random

import pytest
from aiormq.exceptions import (
    AMQPConnectionError,
    ChannelAccessRefused,
    ConnectionClosed,
    ProbableAuthenticationError,
)

from attune.bus.amqp.errors import explain, parse_url, shown
from attune.bus.amqp.supervisor import reconnect_delay
from attune.kernel.errors import BusUnavailable, InvalidSettings

URL = parse_url("amqp://eve:hunter22@mq.example:5672/prod", heartbeat=10)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ProbableAuthenticationError("ACCESS_REFUSED"), "refused the login of user 'eve'"),
        (ChannelAccessRefused("access to queue"), "does not allow user 'eve'"),
        (TimeoutError(), "did not answer in time"),
        (asyncio.CancelledError(), "fell silent"),
        (AMQPConnectionError(111, "Connect call failed"), "cannot be reached"),
        (ConnectionClosed(320, "CONNECTION_FORCED"), "ended the connection: 320"),
        (OSError("amqp://eve:hunter22@mq.example"), "ended the connection"),
    ],
)
def test_each_trouble_has_its_sentence_and_may_heal(error: BaseException, words: str) -> None:
    told = explain(error, URL)
    assert words in told.message
    assert "hunter22" not in told.message
    assert "mq.example:5672/prod" in told.message
    assert told.retriable


def test_an_error_of_ours_is_left_as_it_is() -> None:
    ours = BusUnavailable("The bus is closed.")
    assert explain(ours, URL) is ours


def test_the_address_is_shown_without_password_and_options() -> None:
    assert shown(URL) == "amqp://eve:***@mq.example:5672/prod"


@pytest.mark.parametrize(
    "text", ["", "localhost", "http://h/", "amqp://", "amqp://u:hunter22@h:x/"]
)
def test_an_address_that_is_none_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        parse_url(text, heartbeat=10)
    assert "hunter22" not in str(caught.value)


def test_the_heartbeat_of_the_address_wins() -> None:
    assert URL.query["heartbeat"] == "10"
    assert parse_url("amqp://h/?heartbeat=3", heartbeat=10).query["heartbeat"] == "3"


def test_attempts_to_reconnect_slow_down_to_five_seconds_and_are_spread() -> None:
    delays = [reconnect_delay(failures, random.Random(1)) for failures in range(20)]
    assert 0.05 <= delays[0] <= 0.1
    assert all(2.5 <= delay <= 5.0 for delay in delays[6:])
    assert reconnect_delay(10**6, random.Random(1)) <= 5.0
    assert len({reconnect_delay(3, random.Random(seed)) for seed in range(10)}) > 5
