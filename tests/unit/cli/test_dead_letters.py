"""`attune dead-letter`."""

from typing import Any

import pytest
import yaml

from attune.cli import dead_letters
from tests.unit.cli.conftest import CommandLine
from tests.unit.client.fake import FakeServer, data, page, plain, refusal
from tests.unit.client.test_dead_letters import LETTERS, letter


def done(replayed: int, remaining: int = 0, *refused: int) -> Any:
    named = [{"id": id_, "error": "The queue is gone."} for id_ in refused]
    return data({"replayed": replayed, "refused": named, "remaining": remaining})


def test_letters_are_listed_with_where_and_why_they_died(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", LETTERS, page([letter(9), letter(7, error=None, message_type=None)]))
    shown = attune("dead-letter", "list")
    assert shown.code == 0
    first, second = shown.out.splitlines()[1:]
    assert first.split()[:6] == [
        "9", "executor.event.created", "event.created", "failed", "no", "3",
    ]  # fmt: skip
    assert second.split()[:5] == ["7", "executor.event.created", "-", "failed", "-"]
    assert [each["id"] for each in attune("dead-letter", "list", "-o", "json").json] == [9, 7]
    assert len(yaml.safe_load(attune("dead-letter", "list", "-o", "yaml").out)) == 2


def test_letters_are_filtered(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", LETTERS, page([]))
    assert attune("dead-letter", "list").out == "There are no dead letters.\n"
    options = ["--queue", "q", "--reason", "expired", "--type", "t", "--waiting", "-n", "5"]
    assert attune("dead-letter", "list", *options).out == "No dead letters are like that.\n"
    assert dict(server.requests[-1].url.params) == {
        "queue": "q", "reason": "expired", "message_type": "t", "replayed": "false",
        "page_size": "5", "page": "1",
    }  # fmt: skip
    attune("dead-letter", "list", "--replayed")
    assert server.requests[-1].url.params["replayed"] == "true"
    both = attune("dead-letter", "list", "--replayed", "--waiting")
    assert (both.code, "name one of them" in both.err) == (2, True)
    assert attune("dead-letter", "list", "--reason", "boredom").code == 2


def test_a_letter_is_shown_with_its_body_and_cannot_move_the_cursor(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{LETTERS}/7", data(letter(body="poison \x1b[31m", body_encoding="utf-8")))
    shown = attune("dead-letter", "show", "7")
    assert "poison" in shown.out
    assert "\x1b" not in shown.out
    assert attune("dead-letter", "show", "7", "-o", "json").json["body"] == "poison \x1b[31m"
    server.on("GET", f"{LETTERS}/7", data(letter(body="/wA=", body_encoding="base64")))
    assert "Body (base64)" in attune("dead-letter", "show", "7").out


def test_letters_are_replayed_by_id_and_one_that_cannot_be_keeps_no_other_back(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", f"{LETTERS}/7/replay", data(letter(7, replay_count=1)))
    server.on("POST", f"{LETTERS}/8/replay", refusal(409, "The queue is gone."))
    server.on("POST", f"{LETTERS}/9/replay", data(letter(9, replay_count=1)))
    shown = attune("dead-letter", "replay", "7", "8", "9")
    assert shown.code == 1
    assert shown.out == "The dead letter 7 was replayed.\nThe dead letter 9 was replayed.\n"
    assert shown.err == "attune: 8: The queue is gone.\n"
    found = attune("dead-letter", "replay", "7", "9", "-o", "json")
    assert (found.code, [each["replay_count"] for each in found.json]) == (0, [1, 1])


def test_all_that_wait_are_replayed_and_counted(attune: CommandLine, server: FakeServer) -> None:
    server.on("POST", f"{LETTERS}/replay", done(3, 0))
    options = ["--all", "--queue", "q", "--reason", "failed", "--type", "t", "--yes"]
    shown = attune("dead-letter", "replay", *options)
    assert (shown.code, shown.out) == (0, "3 dead letters replayed; 0 like that still wait.\n")
    wanted = {"queue": "q", "reason": "failed", "message_type": "t"}
    assert server.bodies("POST", f"{LETTERS}/replay") == [wanted]
    server.on("POST", f"{LETTERS}/replay", done(1, 1, 8))
    shown = attune("dead-letter", "replay", "--all", "-o", "json")
    assert (shown.code, shown.err) == (1, "attune: 8: The queue is gone.\n")
    assert shown.json["refused"] == [{"id": 8, "error": "The queue is gone."}]


def test_more_than_one_call_takes_are_replayed_call_by_call_and_none_without_end(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", f"{LETTERS}/replay", done(1000, 1300, 8), done(1000, 300, 8), done(300, 2, 8))
    shown = attune("dead-letter", "replay", "--all", "-o", "json").json
    refused = [each["id"] for each in shown["refused"]]
    assert (shown["replayed"], shown["remaining"], refused) == (2300, 2, [8])
    server.requests.clear()
    server.on("POST", f"{LETTERS}/replay", done(1000, 1000))  # all of them die again at once
    attune("dead-letter", "replay", "--all")
    assert len(server.requests) == 2


def test_somebody_at_a_terminal_is_asked_before_all_are_replayed(
    attune: CommandLine, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "is_terminal", lambda: True)
    counted = {"page": 1, "page_size": 1, "has_next": True, "has_previous": False}
    items = {"items": [letter()], "pagination": {**counted, "total_items": 12}}
    server.on("GET", LETTERS, plain(items))
    server.on("POST", f"{LETTERS}/replay", done(12))
    refused = attune("dead-letter", "replay", "--all", "--reason", "failed", stdin="n\n")
    assert refused.code == 1
    assert refused.err == "Replay 12 dead letters? [y/N] Nothing was replayed.\n"
    assert dict(server.requests[-1].url.params) == {
        "reason": "failed", "replayed": "false", "page_size": "1",
    }  # fmt: skip
    assert not server.asked("POST", f"{LETTERS}/replay")
    assert attune("dead-letter", "replay", "--all", stdin="y\n").code == 0
    server.requests.clear()
    assert attune("dead-letter", "replay", "--all", "--yes").code == 0
    assert [each.method for each in server.requests] == ["POST"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name the ids of dead letters, or --all"),
        (["7", "--all"], "Name ids or --all, not both"),
        (["7", "--queue", "q"], "choose among --all, not among ids"),
    ],
)
def test_what_is_meant_must_be_clear_before_anything_is_replayed(
    attune: CommandLine, server: FakeServer, arguments: list[str], sentence: str
) -> None:
    refused = attune("dead-letter", "replay", *arguments)
    assert (refused.code, sentence in refused.err) == (2, True)
    assert server.requests == []


def test_letters_are_deleted(attune: CommandLine, server: FakeServer) -> None:
    server.on("DELETE", f"{LETTERS}/7", plain({"success": True, "message": "gone"}))
    shown = attune("dead-letter", "delete", "7", "8")
    assert (shown.code, shown.out) == (1, "The dead letter 7 was deleted.\n")
    assert shown.err.startswith("attune: 8: ")
    assert attune("dead-letter", "delete", "7", "-o", "json").json == [
        {"success": True, "message": "gone"}
    ]
    assert attune("dead-letter", "delete").code == 2
