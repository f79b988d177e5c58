"""The command line against a server that plays its part in memory."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer._completion_classes import BashComplete
from typer.main import get_command
from typer.testing import CliRunner

from attune.cli.choices import Choices
from attune.cli.main import app_for
from attune.client import Client, Server
from attune.client.session import Patience
from tests.unit.client.fake import URL, FakeServer

PLAIN = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}


@dataclass(frozen=True)
class Shown:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    def __init__(self, server: FakeServer, home: Path) -> None:
        self._transport = httpx2.MockTransport(server)
        self.home = home

    def __call__(self, *arguments: str, stdin: str | None = None) -> Shown:
        choices = Choices(connect=self._connect)
        result = CliRunner().invoke(
            app_for(arguments), list(arguments), obj=choices, input=stdin, env=self._environment()
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Shown(result.exit_code, result.stdout, result.stderr)

    def completions(self, *words: str) -> list[str]:
        """What a shell would offer for the last of these words."""
        command = get_command(app_for(words[:-1]))
        choices = Choices(connect=self._connect)
        completer = BashComplete(command, {"obj": choices}, "attune", "_ATTUNE_COMPLETE")
        found = completer.get_completions(list(words[:-1]), words[-1])
        return [each.value for each in found]

    def _environment(self) -> dict[str, str]:
        return {**PLAIN, "HOME": str(self.home), "XDG_CONFIG_HOME": ""}

    def _connect(self, choices: Choices) -> Client:
        return Client(
            Server(choices.url or URL, "the test", access_token="token"),
            patience=Patience(seconds=5, delays=()),
            http=httpx2.Client(transport=self._transport),
        )


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def attune(server: FakeServer, tmp_path: Path) -> CommandLine:
    return CommandLine(server, tmp_path)
