"""`attune run`: parameters in, the action's output and result out, and an exit code that tells how it ended."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import CommandLine
from tests.unit.client.fake import FakeServer, action, data, events, execution, page, refusal

EXECUTE = "/api/v1/executions/execute"
ONE = "/api/v1/executions/7"
SCHEMA = {
    "message": {"type": "string", "required": True},
    "count": {"type": "integer"},
    "share": {"type": "number"},
    "loud": {"type": "boolean"},
    "tags": {"type": "array"},
    "more": {"type": "object"},
    "maybe": {"type": ["integer", "null"]},
}


def lives(server: FakeServer, status: str = "completed", **result: Any) -> None:
    """An execution that is asked for, writes to both streams and ends."""
    whole = {"duration_ms": 320, "stdout": "out\n", "stderr": "err\n", **result}
    server.on("GET", "/api/v1/actions/core.echo", data(action(param_schema=SCHEMA)))
    server.on("POST", EXECUTE, data(execution(status="requested"), 201))
    server.on("GET", ONE, data(execution(status=status, result=whole)))
    server.on("GET", f"{ONE}/logs/stdout/stream", events(("content", "out\n"), ("done", "")))
    server.on("GET", f"{ONE}/logs/stderr/stream", events(("content", "err"), ("done", "")))
    server.on("GET", "/api/v1/executions/stream", events())


def test_it_runs_follows_and_shows_the_result(attune: CommandLine, server: FakeServer) -> None:
    lives(server, data={"message": "hi"})
    shown = attune("run", "core.echo")
    assert shown.code == 0
    assert shown.out.startswith("out\n")
    assert shown.err == "err\n"
    assert "core.echo completed in 320 ms" in shown.out
    assert '"message": "hi"' in shown.out
    assert "execution 7" in shown.out
    assert server.bodies("POST", EXECUTE) == [{"action_ref": "core.echo", "parameters": {}}]


def test_for_a_program_the_output_is_one_document(attune: CommandLine, server: FakeServer) -> None:
    lives(server, data={"message": "hi"})
    for arguments in (["-o", "json", "run", "core.echo"], ["run", "core.echo", "--output", "JSON"]):
        shown = attune(*arguments)
        assert shown.json["result"]["data"] == {"message": "hi"}
        assert shown.json["created"] == "2026-01-01T12:00:00Z"
        assert (shown.code, shown.err) == (0, "")


def test_a_program_may_follow_on_standard_error(attune: CommandLine, server: FakeServer) -> None:
    lives(server)
    shown = attune("run", "core.echo", "-o", "json", "--follow")
    assert shown.json["status"] == "completed"
    assert sorted(shown.err.split()) == ["err", "out"]


def test_one_that_does_not_complete_ends_with_one(attune: CommandLine, server: FakeServer) -> None:
    lives(server, "failed", error="It broke.", exit_code=3)
    shown = attune("run", "core.echo", "--no-follow")
    assert shown.code == 1
    assert "core.echo failed in 320 ms" in shown.out
    assert "It broke." in shown.out
    assert "exit code 3" in shown.out
    assert "out" in shown.out
    assert attune("run", "core.echo", "-o", "json").code == 1


def test_it_need_not_be_waited_for(attune: CommandLine, server: FakeServer) -> None:
    lives(server)
    shown = attune("run", "core.echo", "--no-wait")
    assert (shown.code, shown.out) == (0, "Execution 7 of core.echo is asked for.\n")
    assert server.asked("GET", ONE) == []


def test_parameters_get_the_types_of_the_schema(attune: CommandLine, server: FakeServer) -> None:
    lives(server)
    typed = {
        "message": ("5", "5"),
        "count": ("5", 5),
        "share": ("0.5", 0.5),
        "loud": ("True", True),
        "tags": ('["a"]', ["a"]),
        "more": ('{"a": 1}', {"a": 1}),
        "maybe": ("null", None),
        "unknown": ("5", "5"),
    }
    given = [part for name, pair in typed.items() for part in ("-p", f"{name}={pair[0]}")]
    assert attune("run", "core.echo", "--no-wait", *given, "-p", "raw:=[1, null]").code == 0
    [body] = server.bodies("POST", EXECUTE)
    assert body["parameters"] == {
        **{name: pair[1] for name, pair in typed.items()},
        "raw": [1, None],
    }


def test_a_schema_of_the_other_form_is_read_as_well(
    attune: CommandLine, server: FakeServer
) -> None:
    lives(server)
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    server.on("GET", "/api/v1/actions/core.echo", data(action(param_schema=schema)))
    assert attune("run", "core.echo", "--no-wait", "-p", "count=5").code == 0
    assert server.bodies("POST", EXECUTE)[0]["parameters"] == {"count": 5}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["-p", "count=many"], "count must be a whole number, not 'many'"),
        (["-p", "count=1.5"], "count must be a whole number"),
        (["-p", "loud=perhaps"], "loud must be true or false"),
        (["-p", "tags=a,b"], "tags must be a JSON array"),
        (["-p", "more=[]"], "more must be a JSON object"),
        (["-p", "message"], "--param must be NAME=VALUE or NAME:=JSON"),
        (["-p", "x:=["], "x is not JSON"),
        (["--params", "[1]"], "--params must be a JSON object"),
        (["--params", "@nowhere.json"], "nowhere.json cannot be read: No such file"),
        (["--env", "X"], "--env must be NAME=VALUE"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_told_and_nothing_runs(
    attune: CommandLine, server: FakeServer, given: list[str], words: str
) -> None:
    lives(server)
    shown = attune("run", "core.echo", *given)
    assert shown.code == 2
    assert words in shown.err
    assert shown.out == ""
    assert server.asked("POST", EXECUTE) == []


def test_parameters_come_from_a_file_or_standard_input(
    attune: CommandLine, server: FakeServer, tmp_path: Path
) -> None:
    lives(server)
    (tmp_path / "p.json").write_text('{"message": "filed", "count": 1}')
    attune("run", "core.echo", "--no-wait", "--params", f"@{tmp_path / 'p.json'}", "-p", "count=2")
    attune("run", "core.echo", "--no-wait", "--params", "@-", stdin='{"message": "piped"}')
    first, second = (each["parameters"] for each in server.bodies("POST", EXECUTE))
    assert first == {"message": "filed", "count": 2}
    assert second == {"message": "piped"}


def test_its_options_go_to_the_server(attune: CommandLine, server: FakeServer) -> None:
    lives(server)
    options = ["--timeout", "9", "--priority", "high", "-e", "A=b=c", "--idempotency-key", "k"]
    assert attune("run", "core.echo", "--no-wait", *options).code == 0
    assert server.bodies("POST", EXECUTE)[0] == {
        "action_ref": "core.echo",
        "parameters": {},
        "timeout_seconds": 9,
        "priority": "high",
        "env_vars": {"A": "b=c"},
        "idempotency_key": "k",
    }


def test_retries_of_one_run_are_added_to_what_the_action_says(
    attune: CommandLine, server: FakeServer
) -> None:
    lives(server)
    usual = {"on": ["timeout"], "delay": 60, "backoff": "constant"}
    server.on("GET", "/api/v1/actions/core.echo", data(action(retry=usual)))
    options = ["--max-retries", "5", "--retry-delay", "0.5", "--backoff", "Linear"]
    assert attune("run", "core.echo", "--no-wait", *options).code == 0
    [body] = server.bodies("POST", EXECUTE)
    assert body["max_retries"] == 5
    assert body["retry"] == {"on": ["timeout"], "delay": 0.5, "backoff": "linear"}


def test_only_the_number_of_retries_needs_no_look_at_the_action(
    attune: CommandLine, server: FakeServer
) -> None:
    lives(server)
    assert attune("run", "core.echo", "--no-wait", "--max-retries", "0").code == 0
    [body] = server.bodies("POST", EXECUTE)
    assert (body["max_retries"], "retry" in body) == (0, False)
    assert server.asked("GET", "/api/v1/actions/core.echo") == []
    for wrong in (["--max-retries", "-1"], ["--max-retries", "x"], ["--retry-delay", "-1"]):
        shown = attune("run", "core.echo", *wrong)
        assert (shown.code, wrong[0] in shown.err) == (2, True)
    assert len(server.asked("POST", EXECUTE)) == 1


def test_a_refusal_is_told_with_each_field(attune: CommandLine, server: FakeServer) -> None:
    lives(server)
    faults = {"parameters.message": "is required", "parameters.count": "must be above 0"}
    server.on("POST", EXECUTE, refusal(422, "The parameters do not fit.", details=faults))
    shown = attune("run", "core.echo", "-o", "json")
    assert shown.code == 1
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "attune: The parameters do not fit.",
        "  parameters.message: is required",
        "  parameters.count: must be above 0",
    ]


def test_what_the_sentence_says_is_not_said_again(attune: CommandLine, server: FakeServer) -> None:
    lives(server)
    sentence = "parameters.message: must be a string"
    details = {"parameters.message": "must be a string"}
    server.on("POST", EXECUTE, refusal(422, sentence, details=details))
    assert attune("run", "core.echo").err == f"attune: {sentence}\n"


@pytest.mark.parametrize(("typed", "near"), [("core.ecko", "core.echo"), ("ech", "core.echo")])
def test_a_mistyped_ref_is_answered_with_near_ones(
    attune: CommandLine, server: FakeServer, typed: str, near: str
) -> None:
    server.on("POST", EXECUTE, refusal(404, f"No action has the ref {typed}."))
    server.on("GET", "/api/v1/actions", page([action(), action("core.noop", 2)]))
    shown = attune("run", typed)
    assert shown.code == 1
    assert shown.err == f"attune: No action has the ref {typed}. Did you mean {near}?\n"


def test_waiting_may_end_before_the_execution_does(attune: CommandLine, server: FakeServer) -> None:
    lives(server)
    server.on("GET", ONE, data(execution(status="running")))
    shown = attune("run", "core.echo", "--no-follow", "--wait-timeout", "0.05")
    assert shown.code == 1
    assert "Execution 7 is still running after 0.05 s." in shown.err


def test_output_cannot_move_the_cursor(attune: CommandLine, server: FakeServer) -> None:
    lives(server, data="\x1b[2Jgone")
    assert "\x1b" not in attune("run", "core.echo").out


def test_without_a_log_stream_the_output_comes_from_the_result(
    attune: CommandLine, server: FakeServer
) -> None:
    lives(server)
    for stream in ("stdout", "stderr"):
        server.on("GET", f"{ONE}/logs/{stream}/stream", refusal(404, "No such path."))
    shown = attune("run", "core.echo")
    assert shown.out.startswith("out\n")
    assert shown.err == "err\n"
