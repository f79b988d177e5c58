"""`attune queue verify`: what it asks for, what it says, and how it ends."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import msgspec
import pytest
import typer
from typer.testing import CliRunner

from attune.cli.choices import Choices, remember
from attune.cli.queue_verify import add_verify, moment
from attune.cli.quick import QuickGroup
from attune.client import Client, Server
from attune.client.session import Patience
from attune.kernel.errors import InvalidInput
from attune.pipeline.queues.decisions import Decision
from tests.unit.cli.conftest import PLAIN, Shown
from tests.unit.client.fake import URL, FakeServer, data, refusal
from tests.unit.pipeline.lane_histories import Lane

DECISIONS = "/api/v1/admin/decisions"
NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def history() -> list[Decision]:
    lane = Lane(id=3, limit=1)
    lane.do(("join", 2), ("join", 2))
    lane.do(("end", 0))
    lane.do(("end", 0))
    return lane.rows


def shown(row: Decision, **fields: Any) -> dict[str, Any]:
    known = {"action_ref": "core.echo", "group": {"host": "a"}, **fields}
    return {**msgspec.to_builtins(row), **known}


def page(rows: list[Decision], then: str | None = None) -> httpx2.Response:
    return data({"items": [shown(row) for row in rows], "next": then})


class Verify:
    def __init__(self, server: FakeServer, home: Path) -> None:
        self._transport = httpx2.MockTransport(server)
        self._home = home

    def __call__(self, *arguments: str) -> Shown:
        group = typer.Typer(cls=QuickGroup)
        group.callback()(remember)
        add_verify(group)
        result = CliRunner().invoke(
            group,
            ["verify", *arguments],
            obj=Choices(connect=self._connect),
            env={**PLAIN, "HOME": str(self._home), "XDG_CONFIG_HOME": ""},
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Shown(result.exit_code, result.stdout, result.stderr)

    def _connect(self, _choices: Choices) -> Client:
        return Client(
            Server(URL, access_token="token"),
            patience=Patience(seconds=5, delays=()),
            http=httpx2.Client(transport=self._transport),
        )


@pytest.fixture
def verify(server: FakeServer, tmp_path: Path) -> Verify:
    return Verify(server, tmp_path)


def test_a_log_that_holds_is_told_in_one_line(verify: Verify, server: FakeServer) -> None:
    rows = history()
    server.on("GET", DECISIONS, page(rows[:2], "3.2"), page(rows[2:]))
    found = verify()
    assert (found.code, found.err) == (0, "")
    assert found.out == (
        "Order and limits held: 2 admissions of 2 executions in 1 lane,"
        " 3 decisions from 2026-01-01 00:00:01 to 2026-01-01 00:00:03 UTC.\n"
    )


def test_a_log_that_begins_in_the_middle_is_told_in_a_second_line(
    verify: Verify, server: FakeServer
) -> None:
    server.on("GET", DECISIONS, page(history()[1:]))
    [proved, partial] = verify().out.splitlines()
    assert proved.startswith("Order and limits held")
    assert partial.startswith("1 lane had executions, or a history, before the first decision")


def test_a_proof_is_a_document_for_programs(verify: Verify, server: FakeServer) -> None:
    server.on("GET", DECISIONS, page(history()))
    assert verify("-o", "json").json == {
        "lanes": 1,
        "partial_lanes": 0,
        "decisions": 3,
        "admissions": 2,
        "executions": 2,
        "first_at": "2026-01-01T00:00:01Z",
        "last_at": "2026-01-01T00:00:03Z",
        "violation": None,
    }


def test_the_first_violation_is_shown_with_its_queue_and_the_exit_code_is_one(
    verify: Verify, server: FakeServer
) -> None:
    rows = history()
    server.on("GET", DECISIONS, page([rows[0], rows[2]], "3.3"))
    found = verify()
    assert found.code == 1
    assert found.out == (
        "Violation: Lane 3, decision 3 at 2026-01-01T00:00:03Z:"
        " decision 2 of this lane before it is missing from the log.\n"
        'Lane 3 is the queue of core.echo {"host":"a"}. 2 decisions were replayed up to there.\n'
    )
    assert len(server.requests) == 1
    document = verify("-o", "json")
    assert document.code == 1
    assert document.json["violation"]["number"] == 3


def test_long_work_tells_how_far_it_is(
    verify: Verify, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    line = SimpleNamespace(update=told.append)
    monkeypatch.setattr("attune.cli.queue_verify.status_line", lambda *_, **__: nullcontext(line))
    lane = Lane(id=3)
    for _ in range(1001):
        lane.do(("refuse",))
    server.on("GET", DECISIONS, page(lane.rows))
    assert verify().code == 0
    assert told == [f"Replayed {count} decisions, now in lane 3" for count in ("500", "1,000")]


def test_an_empty_log_says_so(verify: Verify, server: FakeServer) -> None:
    server.on("GET", DECISIONS, page([]))
    assert verify() == Shown(0, "There are no decisions to verify.\n", "")


def test_since_and_action_narrow_down_what_is_read(verify: Verify, server: FakeServer) -> None:
    server.on("GET", DECISIONS, page([]))
    verify("--since", "2026-01-02T08:00", "--action", "core.echo")
    verify("--since", "2h")
    exact, ago = (dict(each.url.params) for each in server.requests)
    assert exact["since"] == "2026-01-02T08:00:00+00:00"
    assert exact["action_ref"] == "core.echo"
    age = datetime.now(UTC) - datetime.fromisoformat(ago["since"])
    assert timedelta(hours=2) <= age < timedelta(hours=2, minutes=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", NOW - timedelta(seconds=90)),
        ("30m", NOW - timedelta(minutes=30)),
        ("30min", NOW - timedelta(minutes=30)),
        ("1d", NOW - timedelta(days=1)),
        ("2 w", NOW - timedelta(weeks=2)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T08:00:00+02:00", datetime(2026, 1, 31, 6, tzinfo=UTC)),
    ],
)
def test_a_time_is_exact_or_so_long_ago(text: str, expected: datetime) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "2x", "999999999w", "-2h", "0001-01-01T00:00+05:00"])
def test_a_time_that_cannot_be_read_names_the_option_and_the_rule(
    verify: Verify, server: FakeServer, text: str
) -> None:
    with pytest.raises(InvalidInput, match=r"^--since: must be a time such as"):
        moment(text, NOW)
    found = verify(f"--since={text}")
    assert (found.code, server.requests) == (2, [])
    assert found.err.startswith("attune: --since: must be a time such as")


def test_a_refusal_is_one_sentence(verify: Verify, server: FakeServer) -> None:
    server.on("GET", DECISIONS, refusal(403, "The decision log is read by administrators."))
    assert verify() == Shown(1, "", "attune: The decision log is read by administrators.\n")


def test_an_item_of_another_version_is_told_in_words(verify: Verify, server: FakeServer) -> None:
    odd = shown(history()[0], items=[["teleported", 1]])
    server.on("GET", DECISIONS, data({"items": [odd], "next": None}))
    found = verify()
    assert found.code == 2
    assert "Decision 1 of lane 3 holds what this version cannot read" in found.err
