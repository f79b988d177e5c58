"""Completing while one types: commands from the list, refs from the server, silence when it is away."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from attune.cli.main import _called, _words
from tests.unit.cli.conftest import CommandLine
from tests.unit.client.fake import FakeServer, action, page

COMMAND = Path(sys.executable).with_name("attune")


def completed(home: Path, *words: str) -> list[str]:
    """What bash would be offered for these words, with no server anywhere."""
    shown = subprocess.run(
        [COMMAND],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            "HOME": str(home),
            "ATTUNE_URL": "http://127.0.0.1:1",
            "_ATTUNE_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["attune", *words]),
            "COMP_CWORD": str(len(words)),
        },
    )
    assert shown.stderr == ""
    return shown.stdout.split()


def test_commands_are_completed(tmp_path: Path) -> None:
    assert "execution" in completed(tmp_path, "exec")
    assert completed(tmp_path, "execution", "ca") == ["cancel"]


def test_where_no_server_answers_nothing_is_offered_and_nothing_said(tmp_path: Path) -> None:
    assert completed(tmp_path, "run", "core.") == []


def test_refs_come_from_the_server(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", "/api/v1/actions", page([action(), action("demo.x", 2)]))
    assert attune.completions("run", "co") == ["core.echo"]
    assert attune.completions("action", "show", "") == ["core.echo", "demo.x"]


def test_a_server_that_refuses_is_silence(attune: CommandLine, server: FakeServer) -> None:
    server.on("GET", "/api/v1/actions", httpx2.ConnectError("refused"))
    assert attune.completions("run", "co") == []


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        (["run", "core.echo"], "run"),
        (["-o", "json", "run"], "run"),
        (["--url", "api", "rule", "list"], "rule"),
        (["worker"], "worker"),
        (["worker", "-c", "x.yaml"], "worker"),
        (["worker", "list"], "worker list"),
        (["--help"], None),
        (["nothing"], None),
        ([], None),
    ],
)
def test_the_command_is_found_behind_options(arguments: list[str], called: str | None) -> None:
    assert _called(arguments) == called


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"COMP_WORDS": "attune ru", "COMP_CWORD": "1"}, []),
        ({"COMP_WORDS": "attune run co", "COMP_CWORD": "2"}, ["run"]),
        ({"_TYPER_COMPLETE_ARGS": "attune run co"}, ["run"]),
        ({"_TYPER_COMPLETE_ARGS": "attune run "}, ["run"]),
        ({"_TYPER_COMPLETE_ARGS": "attune run -p 'a b"}, ["run", "-p", "'a"]),
    ],
)
def test_what_is_typed_tells_which_command_is_meant(
    environ: dict[str, str], words: list[str]
) -> None:
    assert _words(["ignored"], {"_ATTUNE_COMPLETE": "complete_bash", **environ}) == words
    assert _words(["run"], environ) == ["run"]
