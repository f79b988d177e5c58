"""`attune action show` tells in words how an action is tried again, and what it may use."""

from typing import Any

import pytest

from attune.cli.retry_words import limits_in_words, loss_in_words, retries_in_words
from tests.unit.cli.conftest import CommandLine
from tests.unit.client.fake import FakeServer, action, data

EXPONENTIAL = {"delay": 10.0, "backoff": "exponential", "max_delay": 300}


@pytest.mark.parametrize(
    ("count", "retry", "words"),
    [
        (None, None, None),
        (0, {"delay": 5}, "none"),
        (3, None, "up to 3, at once"),
        (3, {"delay": 10.0}, "up to 3, 10.0 s apart"),
        (3, {"delay": 90, "max_delay": 60}, "up to 3, 1 min 0 s apart"),
        (2, {"delay": 5, "backoff": "linear"}, "up to 2, after 5.0 s, 10.0 s"),
        (9, EXPONENTIAL, "up to 9, after 10.0 s, 20.0 s, 40.0 s … up to 5 min 0 s"),
        (1, {"delay": 1, "jitter": 0.25}, "up to 1, 1.0 s apart, each up to 25 % shorter"),
        (
            1,
            {"on": ["timeout", "worker_lost"], "queue_place": "tail"},
            "up to 1, at once; only after a timeout or the loss of its worker; then at the end of its queue",
        ),
        (
            1,
            {"exit_codes": [69, 75], "matching": ["timed out"], "on": ["failed"]},
            "up to 1, at once; only after a failure with exit code 69, 75 or an error like 'timed out'",
        ),
    ],
)
def test_retries_in_words(count: int | None, retry: Any, words: str | None) -> None:
    assert retries_in_words(count, retry) == words


def test_limits_in_words() -> None:
    assert limits_in_words(None) is None
    assert limits_in_words({"memory_mb": None}) is None
    limits = {
        "cpu_seconds": 1.5,
        "memory_mb": 64,
        "open_files": 9,
        "processes": 2,
        "output_mb": 1.0,
    }
    assert limits_in_words(limits) == (
        "1.5 s of CPU time, 64 MB of memory, 9 open files, 2 processes, 1 MB of each output kept"
    )


def test_what_follows_the_loss_of_a_worker_in_words() -> None:
    assert loss_in_words("fail") == "it is abandoned, so that it never runs twice"
    assert loss_in_words(None) is None
    assert loss_in_words("a word of tomorrow") == "a word of tomorrow"


def test_an_action_shows_all_of_it(attune: CommandLine, server: FakeServer) -> None:
    found = action(
        max_retries=2,
        retry={"delay": 5.0},
        on_worker_lost="fail",
        limits={"memory_mb": 64},
        reuse=True,
    )
    server.on("GET", "/api/v1/actions/core.echo", data(found))
    shown = attune("action", "show", "core.echo").out
    for words in (
        "up to 2, 5.0 s apart",
        "it is abandoned",
        "64 MB of memory",
        "shared by executions, one after the other",
    ):
        assert words in shown
