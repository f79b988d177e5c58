"""A log line is a sentence plus fields, in JSON where no person looks, and never shows a secret."""

import io
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import structlog

from attune.kernel.settings import LogFormat, LogLevel, LogSettings
from attune.telemetry.logs import configure_logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_where_there_is_no_terminal(stream: io.StringIO) -> None:
    configure_logs(LogSettings(), stream)
    with structlog.contextvars.bound_contextvars(execution_id=7):
        structlog.get_logger().info("Execution scheduled.", worker_id=45)
    [line] = lines(stream)
    assert line["event"] == "Execution scheduled."
    assert (line["execution_id"], line["worker_id"], line["level"]) == (7, 45, "info")
    assert line["timestamp"].endswith("Z")


def test_a_line_is_one_write_so_that_threads_do_not_share_one(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[str] = []
    monkeypatch.setattr(stream, "write", writes.append)
    configure_logs(LogSettings(), stream)
    structlog.get_logger().warning("Ours.")
    logging.getLogger("a library").warning("Theirs.")
    assert [one.count("\n") for one in writes] == [1, 1]
    assert all(one.endswith("}\n") for one in writes)


def test_the_level_holds(stream: io.StringIO) -> None:
    configure_logs(LogSettings(level=LogLevel.WARNING), stream)
    structlog.get_logger().info("Unseen.")
    structlog.get_logger().warning("Seen.")
    assert [line["event"] for line in lines(stream)] == ["Seen."]


def test_people_get_text(stream: io.StringIO) -> None:
    configure_logs(LogSettings(format=LogFormat.CONSOLE), stream)
    structlog.get_logger().info("Ready.", process="api")
    assert "Ready." in stream.getvalue()
    assert "process=api" in stream.getvalue()


def test_libraries_take_the_same_way(stream: io.StringIO) -> None:
    configure_logs(LogSettings(), stream)
    logging.getLogger("some.library").warning("Disk %s", "full")
    [line] = lines(stream)
    assert (line["event"], line["logger"]) == ("Disk full", "some.library")


@pytest.mark.parametrize("format_", [LogFormat.JSON, LogFormat.CONSOLE])
def test_f41_no_line_shows_a_secret(stream: io.StringIO, format_: LogFormat) -> None:
    configure_logs(LogSettings(format=format_), stream)
    log = structlog.get_logger()
    log.info(
        "Connected.",
        url="amqp://user:sesame@host/v",
        password="sesame",
        access_token="sesame",
        headers={"Authorization": "Bearer sesame", "Accept": "json"},
        nested=[{"client_secret": "sesame"}],
        error="cannot reach postgresql://u:ses/ame@db/x",
    )
    logging.getLogger("driver").warning("failed for redis://:sesame@cache/0")
    try:
        raise ConnectionError("amqp://user:sesame@host is away")
    except ConnectionError:
        log.exception("Lost.")
    assert "sesame" not in stream.getvalue()
    assert "ses/ame" not in stream.getvalue()
    assert "Accept" in stream.getvalue()


def test_what_json_cannot_say_is_shown_by_its_representation(stream: io.StringIO) -> None:
    configure_logs(LogSettings(), stream)
    structlog.get_logger().info("Odd.", value={1, 2}, error=ValueError("x"), key={("a", 1): 2})
    assert "Odd." in stream.getvalue()
