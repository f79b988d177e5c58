"""What a runtime setting may be, and what holds where it is not set."""

from datetime import UTC, datetime
from typing import Any

import pytest

from attune.catalog.runtime_settings import (
    NAMES,
    RuntimeSettings,
    SettingsInForce,
    change_settings,
    in_force,
)
from attune.kernel.errors import InvalidInput

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULTS = SettingsInForce(
    max_concurrent_executions=10,
    max_queue_length=10_000,
    queue_timeout_seconds=3600,
    ageing_seconds=None,
)

WRONG: list[tuple[str, Any, str]] = [
    ("max_concurrent_executions", -1, "a whole number from 0"),
    ("max_concurrent_executions", 1.5, "a whole number from 0"),
    ("max_concurrent_executions", True, "a whole number from 0"),
    ("max_concurrent_executions", "5", "a whole number from 0"),
    ("max_concurrent_executions", 2**31, "a whole number from 0"),
    ("max_queue_length", 0, "a whole number from 1"),
    ("max_queue_length", [], "a whole number from 1"),
    ("queue_timeout_seconds", 0, "seconds above 0"),
    ("queue_timeout_seconds", False, "seconds above 0"),
    ("queue_timeout_seconds", float("inf"), "seconds above 0"),
    ("ageing_seconds", float("nan"), "seconds above 0"),
    ("ageing_seconds", 2e9, "at most 1000000000"),
    ("max_concurent_executions", 5, "no such setting; there are max_concurrent_executions"),
    ("max_concurent_executions", None, "no such setting"),
]


class Untouched:
    """A transaction that nobody may use."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used")


@pytest.mark.parametrize(("name", "value", "rule"), WRONG)
async def test_a_wrong_value_is_refused_by_name_and_rule_and_nothing_is_written(
    name: str, value: Any, rule: str
) -> None:
    untouched: Any = Untouched()
    with pytest.raises(InvalidInput, match=rule) as caught:
        await change_settings(untouched, {"max_queue_length": 5, name: value}, None, NOW)
    assert caught.value.fields["field"] == name
    assert list(caught.value.fields["problems"]) == [name]  # type: ignore[call-overload]


async def test_every_wrong_value_is_named() -> None:
    untouched: Any = Untouched()
    with pytest.raises(InvalidInput) as caught:
        await change_settings(untouched, {"ageing_seconds": 0, "max_queue_length": 0}, None, NOW)
    assert caught.value.message.count("must be") == 2


def test_what_is_not_set_has_its_default() -> None:
    assert in_force(RuntimeSettings(), DEFAULTS) == DEFAULTS


def test_what_is_set_goes_before_its_default_also_when_it_is_zero() -> None:
    chosen = RuntimeSettings(max_concurrent_executions=0, ageing_seconds=2.5)
    found = in_force(chosen, DEFAULTS)
    assert (found.max_concurrent_executions, found.ageing_seconds) == (0, 2.5)
    assert (found.max_queue_length, found.queue_timeout_seconds) == (10_000, 3600)


def test_the_names_are_those_of_the_fields() -> None:
    assert NAMES == RuntimeSettings.__struct_fields__ == SettingsInForce.__struct_fields__
