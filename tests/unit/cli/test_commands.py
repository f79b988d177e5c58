"""The other commands: what they ask for, how they show it, and what they say when there is nothing."""

import importlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from attune.cli.commands import COMMANDS
from attune.cli.main import app_for
from tests.unit.cli.conftest import PLAIN, CommandLine
from tests.unit.client.fake import (
    MOMENT,
    FakeServer,
    action,
    data,
    events,
    execution,
    pack,
    page,
    refusal,
    rule,
)

API = "/api/v1"
TRIGGER = {
    "id": 4,
    "ref": "demo.alarm",
    "label": "Alarm",
    "enabled": True,
    "out_schema": {"severity": {"type": "string", "enum": ["low", "high"]}},
    "created": MOMENT,
}
EVENT: dict[str, Any] = {
    "id": 5,
    "trigger_ref": "demo.alarm",
    "payload": {"severity": "low"},
    "created": MOMENT,
    "rules": [
        {"rule_ref": "demo.on_alarm", "matched": False, "reason": "severity is not high"},
        {"rule_ref": "demo.on_any", "matched": True, "reason": None},
    ],
}
ENFORCEMENT = {
    "id": 6,
    "rule_ref": "demo.on_alarm",
    "trigger_ref": "demo.alarm",
    "event": 5,
    "status": "disabled",
    "condition": "all",
    "reason": "message is required",
    "created": MOMENT,
}
WORKER = {
    "id": 8,
    "name": "w1",
    "worker_role": "action",
    "worker_type": "local",
    "health_state": "busy",
    "created": MOMENT,
    "load": {"running": 2, "total_active": 2, "max_concurrent_executions": 10},
    "supported_runtimes": [{"name": "python", "versions": []}, {"name": "shell"}],
}

# Command, path of its list, one item, words that its table shows.
LISTS: list[tuple[list[str], str, dict[str, Any], list[str]]] = [
    (["execution", "list"], "executions", execution(rule_ref="demo.r"), ["core.echo", "demo.r"]),
    (["event", "list"], "events", EVENT, ["5", "demo.alarm"]),
    (["enforcement", "list"], "enforcements", ENFORCEMENT, ["demo.on_alarm", "disabled"]),
    (["rule", "list"], "rules", rule(), ["demo.on_alarm", "yes", "core.echo"]),
    (["action", "list"], "actions", action(), ["core.echo", "core.native"]),
    (["trigger", "list"], "triggers", TRIGGER, ["demo.alarm", "Alarm"]),
    (["pack", "list"], "packs", pack(), ["demo", "1.0.0"]),
    (["worker", "list"], "workers", WORKER, ["w1", "busy", "2/10", "python, shell"]),
]
IDS = [" ".join(each[0]) for each in LISTS]


@pytest.mark.parametrize(("command", "path", "item", "words"), LISTS, ids=IDS)
def test_a_list_is_a_table_for_people_and_an_array_for_programs(
    attune: CommandLine,
    server: FakeServer,
    command: list[str],
    path: str,
    item: dict[str, Any],
    words: list[str],
) -> None:
    server.on("GET", f"{API}/{path}", page([item]))
    shown = attune(*command)
    assert shown.code == 0
    head, line = shown.out.splitlines()
    assert head == head.upper()
    assert all(word in line for word in words)
    [same] = attune(*command, "-o", "json").json
    assert {name: same[name] for name in ("id", "created")} == {
        name: item[name] for name in ("id", "created")
    }
    assert yaml.safe_load(attune("-o", "yaml", *command).out) == [same]


@pytest.mark.parametrize(("command", "path"), [each[:2] for each in LISTS], ids=IDS)
def test_an_empty_list_says_so_in_words(
    attune: CommandLine, server: FakeServer, command: list[str], path: str
) -> None:
    server.on("GET", f"{API}/{path}", page([]))
    shown = attune(*command)
    assert shown.code == 0
    assert shown.out.startswith(("There are no", "No "))
    assert attune(*command, "-o", "json").json == []


@pytest.mark.parametrize(("command", "path"), [each[:2] for each in LISTS], ids=IDS)
def test_a_refusal_is_one_sentence_and_exit_code_one(
    attune: CommandLine, server: FakeServer, command: list[str], path: str
) -> None:
    server.on("GET", f"{API}/{path}", refusal(403, "You lack the permission."))
    shown = attune(*command, "-o", "json")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err == "attune: You lack the permission.\n"


def test_times_are_relative_in_tables(attune: CommandLine, server: FakeServer) -> None:
    ago = datetime.now(UTC) - timedelta(hours=3, minutes=5)
    server.on("GET", f"{API}/rules", page([rule(updated=ago.isoformat())]))
    assert "3 h ago" in attune("rule", "list").out


def test_a_list_of_executions_is_filtered_and_ends_at_its_limit(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{API}/executions", page([execution(n) for n in range(9, 4, -1)], more=True))
    options = ["--status", "failed", "--action", "core.*", "--rule", "demo.r", "--limit", "3"]
    found = attune("execution", "list", *options, "-o", "json").json
    assert [each["id"] for each in found] == [9, 8, 7]
    [request] = server.requests
    asked = dict(request.url.params)
    assert asked.pop("page") == "1"
    assert asked == {
        "status": "failed",
        "action_ref": "core.*",
        "rule_ref": "demo.r",
        "page_size": "3",
    }


def test_an_execution_is_shown_with_its_result(attune: CommandLine, server: FakeServer) -> None:
    result = {"data": {"n": 1}, "duration_ms": 65000, "stdout": "hello\n"}
    found = execution(config={"message": "hi"}, result=result, priority="high")
    server.on("GET", f"{API}/executions/7", data(found))
    shown = attune("execution", "show", "7").out
    for words in ('"message": "hi"', "completed in 1 min 5 s", '"n": 1', "hello", "high"):
        assert words in shown
    assert "2026-01-01 12:00:00 UTC" in shown


def test_logs_go_to_the_stream_that_they_came_from(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", f"{API}/executions/7", data(execution()))
    for stream in ("stdout", "stderr"):
        path = f"{API}/executions/7/logs/{stream}/stream"
        server.on("GET", path, events(("content", f"{stream}\n"), ("done", "")))
    both = attune("execution", "logs", "7")
    assert (both.out, both.err) == ("stdout\n", "stderr\n")
    followed = attune("execution", "logs", "7", "--follow")
    assert (followed.out, followed.err) == ("stdout\n", "stderr\n")
    one = attune("execution", "logs", "7", "--stream", "stderr")
    assert (one.out, one.err) == ("", "stderr\n")
    document = attune("execution", "logs", "7", "-o", "json").json
    assert document == {"stdout": "stdout\n", "stderr": "stderr\n"}


def test_a_stream_that_is_none_is_a_misuse(attune: CommandLine, server: FakeServer) -> None:
    shown = attune("execution", "logs", "7", "--stream", "stdin")
    assert shown.code == 2
    assert "stdin" in shown.err
    assert server.requests == []


def test_one_that_cannot_be_cancelled_does_not_keep_the_others_from_it(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("POST", f"{API}/executions/1/cancel", refusal(409, "It is finished."))
    server.on("POST", f"{API}/executions/2/cancel", data(execution(2, "canceling")))
    shown = attune("execution", "cancel", "1", "2")
    assert shown.code == 1
    assert shown.err == "attune: 1: It is finished.\n"
    assert shown.out == "Execution 2 is canceling.\n"
    assert [each["id"] for each in attune("execution", "cancel", "2", "-o", "json").json] == [2]


def test_an_event_is_told_with_its_payload(attune: CommandLine, server: FakeServer) -> None:
    server.on("POST", f"{API}/events", data(EVENT, 201))
    shown = attune("event", "emit", "demo.alarm", "--payload", '{"severity": "low"}')
    assert shown.out == "Event 5 of demo.alarm is told.\n"
    sent = {"trigger_ref": "demo.alarm", "payload": {"severity": "low"}}
    assert server.bodies("POST", f"{API}/events") == [sent]
    assert attune("event", "emit", "demo.alarm", "-o", "json").json["id"] == 5
    assert attune("event", "emit", "demo.alarm", "--payload", "high").code == 2


def test_an_event_shows_which_rules_were_considered_and_why(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{API}/events/5", data(EVENT))
    lines = attune("event", "show", "5").out.splitlines()
    refused = next(line for line in lines if "demo.on_alarm" in line)
    assert "no" in refused.split()
    assert "severity is not high" in refused
    assert "yes" in next(line for line in lines if "demo.on_any" in line).split()
    server.on("GET", f"{API}/events/5", data({**EVENT, "rules": []}))
    assert "No rule listens to demo.alarm." in attune("event", "show", "5").out


def test_an_enforcement_shows_its_reason_and_executions(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{API}/enforcements/6", data(ENFORCEMENT))
    server.on("GET", f"{API}/executions", page([execution(9, "failed")]))
    shown = attune("enforcement", "show", "6").out
    assert "message is required" in shown
    assert "9 core.echo failed" in shown
    assert server.asked("GET", f"{API}/executions")[0].url.params["enforcement"] == "6"


@pytest.mark.parametrize(("word", "enabled"), [("enable", True), ("disable", False)])
def test_a_rule_is_switched(
    attune: CommandLine, server: FakeServer, word: str, enabled: bool
) -> None:
    server.on("POST", f"{API}/rules/demo.on_alarm/{word}", data(rule(enabled=enabled)))
    assert attune("rule", word, "demo.on_alarm").out == f"Rule demo.on_alarm is {word}d.\n"
    assert attune("rule", word, "demo.on_alarm", "-o", "json").json["enabled"] is enabled


@pytest.mark.parametrize(
    ("command", "path", "near"),
    [
        (["rule", "disable", "demo.on_alrm"], "rules", rule()),
        (["rule", "show", "demo.on_alrm"], "rules", rule()),
        (["trigger", "show", "demo.alrm"], "triggers", TRIGGER),
        (["action", "show", "core.eco"], "actions", action()),
        (["pack", "show", "dmo"], "packs", pack()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistyped_ref_is_answered_with_near_ones(
    attune: CommandLine, server: FakeServer, command: list[str], path: str, near: dict[str, Any]
) -> None:
    server.on("GET", f"{API}/{path}", page([near]))
    shown = attune(*command)
    assert shown.code == 1
    assert shown.err == f"attune: No such path. Did you mean {near['ref']}?\n"


def test_a_ref_that_exists_is_not_suggested_to_itself(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{API}/rules", page([rule(), rule("demo.on_alarms", 9)]))
    assert attune("rule", "show", "demo.on_alarm").err == "attune: No such path.\n"


def test_an_action_shows_its_parameters(attune: CommandLine, server: FakeServer) -> None:
    schema = {
        "message": {"type": "string", "required": True, "description": "What to say"},
        "level": {"enum": ["low", "high"], "default": "low"},
    }
    server.on("GET", f"{API}/actions/core.echo", data(action(param_schema=schema)))
    lines = attune("action", "show", "core.echo").out.splitlines()
    first = next(line for line in lines if line.startswith("message"))
    assert first.split()[1:3] == ["string", "yes"]
    assert first.endswith("What to say")
    assert "low | high" in next(line for line in lines if line.startswith("level"))


def test_a_trigger_shows_what_its_events_carry(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", f"{API}/triggers/demo.alarm", data(TRIGGER))
    assert "low | high" in attune("trigger", "show", "demo.alarm").out


def test_a_rule_shows_its_conditions(attune: CommandLine, server: FakeServer) -> None:
    found = rule(conditions={"expression": "event.payload.x > 1"}, action_params={"message": "m"})
    server.on("GET", f"{API}/rules/demo.on_alarm", data(found))
    shown = attune("rule", "show", "demo.on_alarm").out
    assert "event.payload.x > 1" in shown
    assert '"message": "m"' in shown


def test_a_pack_is_installed_from_its_folder(
    attune: CommandLine, server: FakeServer, tmp_path: Path
) -> None:
    (tmp_path / "pack.yaml").write_text("ref: demo\n")
    told = "policies/x.yaml: rate_limit: not supported yet"
    server.on("POST", f"{API}/packs/upload", data({"pack": pack(), "warnings": [told]}, 201))
    shown = attune("pack", "install", str(tmp_path), "--force")
    assert shown.out == "Pack demo 1.0.0 is installed.\n"
    assert told in shown.err
    assert b'name="force"\r\n\r\ntrue' in server.requests[0].content
    server.on(
        "POST", f"{API}/packs/upload", refusal(409, "The pack demo exists; force updates it.")
    )
    refused = attune("pack", "install", str(tmp_path))
    assert refused.code == 1
    assert refused.err == "attune: The pack demo exists; force updates it.\n"
    assert attune("pack", "install", str(tmp_path / "nowhere")).code == 2


def test_the_option_before_the_command_yields_to_the_one_after_it(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{API}/rules", page([]))
    assert attune("-o", "yaml", "rule", "-o", "table", "list", "-o", "json").out == "[]\n"
    assert attune("rule", "-o", "json", "list").out == "[]\n"


def test_the_url_may_stand_before_and_after_the_command(
    attune: CommandLine, server: FakeServer
) -> None:
    server.on("GET", f"{API}/rules", page([]))
    attune("rule", "list", "--url", "http://b.test")
    attune("--url", "http://a.test", "rule", "list")
    assert [each.url.host for each in server.requests] == ["b.test", "a.test"]


def test_text_of_others_is_shown_as_it_is(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", f"{API}/actions", page([action(description="[red]a[/red] \x1b[31m")]))
    line = attune("action", "list").out.splitlines()[1]
    assert "[red]a[/red]" in line
    assert "\x1b" not in line


def test_every_listed_command_is_there_with_that_help() -> None:
    for name, command in COMMANDS.items():
        words = name.split()
        module = importlib.import_module(f"attune.cli.{command.module}")
        assert hasattr(module, "add_to")
        found: Any = get_command(app_for(words))
        for word in words:
            found = found.commands[word]
        assert found.help.startswith(command.help.removesuffix("."))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--help"], ["rule", "-h"]])
def test_help_is_there_for_everything(arguments: list[str]) -> None:
    shown = CliRunner().invoke(app_for(arguments), arguments, env=PLAIN)
    assert "Usage: " in shown.output


def test_the_list_of_commands_does_not_load_them() -> None:
    shown = CliRunner().invoke(app_for(["--help"]), ["--help"], env=PLAIN)
    assert shown.exit_code == 0
    assert all(name in shown.output for name in COMMANDS)


def test_a_mistyped_command_is_answered_with_near_ones() -> None:
    shown = CliRunner().invoke(app_for(["exection"]), ["exection"], env=PLAIN)
    assert shown.exit_code == 2
    assert "execution" in shown.output


def test_what_is_printed_for_programs_is_json_also_when_it_is_piped_through(
    attune: CommandLine, server: FakeServer
) -> None:
    wide = "x" * 500
    server.on("GET", f"{API}/rules", page([rule(label=wide)]))
    assert json.loads(attune("rule", "list", "-o", "json").out)[0]["label"] == wide


def test_a_trigger_gets_an_address_and_shows_the_one_it_has(
    attune: CommandLine, server: FakeServer
) -> None:
    bare = {**TRIGGER, "webhook_enabled": False}
    called = {**TRIGGER, "webhook_enabled": True, "webhook_url": "/api/v1/webhooks/wh_1"}
    server.on("GET", f"{API}/triggers/demo.order", data(bare), data(called))
    server.on("POST", f"{API}/triggers/demo.order/webhooks/enable", data(called))
    for _ in range(2):
        assert attune("trigger", "webhook", "demo.order").out.endswith("/api/v1/webhooks/wh_1\n")
    server.on("GET", f"{API}/triggers/demo.order", data(called))
    server.on("POST", f"{API}/triggers/demo.order/webhooks/disable", data(bare))
    assert "no webhook" in attune("trigger", "webhook", "demo.order", "--off").out
