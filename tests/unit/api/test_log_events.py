"""Output as events: every character once, in its order, with the position after it."""

import pytest

from attune.api import log_events
from attune.api.log_events import LogPosition, resumed
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.outputs import Written
from tests.contract.api.streaming import Event, parsed


def written(text: str, begins_at: int = 0, *, attempt: int = 1, status: str = "running") -> Written:
    return Written(
        status=ExecutionStatus(status), attempt=attempt, begins_at=begins_at, text=text.encode()
    )


def told(position: LogPosition, found: Written) -> list[Event]:
    return [parsed(each.decode().removesuffix("\n\n")) for each in position.told(found)]


def shapes(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(event.name, event.data, event.id) for event in events]


def test_content_comes_first_then_what_is_appended_then_the_end() -> None:
    position = LogPosition(0)
    assert shapes(told(position, written(""))) == [("waiting", "", "")]
    assert shapes(told(position, written(""))) == []
    assert shapes(told(position, written("é\n"))) == [("content", "é\n", "3")]
    assert shapes(told(position, written("b", 3))) == [("append", "b", "4")]
    end = written("\n", 4, status="failed")
    assert shapes(told(position, end)) == [("append", "\n", "5"), ("done", "failed", "5")]


def test_another_attempt_begins_again() -> None:
    position = LogPosition(0)
    told(position, written("first"))
    assert shapes(told(position, written("", attempt=2))) == []
    assert position.offset == 0
    assert shapes(told(position, written("second", attempt=2))) == [("content", "second", "6")]


def test_a_carriage_return_waits_for_what_follows_it() -> None:
    position = LogPosition(0)
    assert shapes(told(position, written("a\r"))) == [("content", "a", "1")]
    assert shapes(told(position, written("\r\nb", 1))) == [("append", "\nb", "4")]
    assert told(position, written("\r", 4)) == []
    last = told(position, written("\r", 4, status="completed"))
    assert shapes(last) == [("append", "\n", "5"), ("done", "completed", "5")]


def test_long_output_comes_in_pieces_of_whole_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_events, "PIECE_BYTES", 4)
    text = "aé€😀" * 5
    events = told(LogPosition(0), written(text))
    assert "".join(event.data for event in events) == text
    assert [event.name for event in events] == ["content"] + ["append"] * (len(events) - 1)
    assert max(len(event.data.encode()) for event in events) <= 4
    assert events[-1].id == str(len(text.encode()))


@pytest.mark.parametrize(
    ("last", "offset", "start"),
    [(None, 5, 5), ("", 5, 5), ("7", 5, 7), ("x", 5, 5), ("-1", 5, 5), ("9" * 40, 0, 99)],
)
def test_whoever_comes_again_goes_on_where_he_was(
    last: str | None, offset: int, start: int
) -> None:
    assert resumed(last, offset, 99) == start
