"""What every command that talks to a server can be told: the form of its output, and which server."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from attune.client.client import Client


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Output = Annotated[
    Format | None,
    typer.Option(
        "--output",
        "-o",
        case_sensitive=False,
        show_default=False,
        help="A table for people (the default), or JSON or YAML for programs.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        show_default=False,
        help="The server's address. Else ATTUNE_URL, where you logged in, the `attune up` of this machine.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", show_default=False, help="Data directory of the `attune up` that is meant."
    ),
]


@dataclass
class Choices:
    """`connect` is replaced by tests; None means a client as the environment has it."""

    output: Format | None = None
    url: str | None = None
    data_dir: Path | None = None
    connect: "Callable[[Choices], Client] | None" = None

    def take(self, output: Format | None, url: str | None, data_dir: Path | None = None) -> None:
        """Options stand before or after a command; the last word wins."""
        self.output = output or self.output
        self.url = url or self.url
        self.data_dir = data_dir or self.data_dir


def choices_of(context: typer.Context) -> Choices:
    found = context.find_object(Choices)
    if found is None:
        found = context.obj = Choices()
    return found


def remember(context: typer.Context, output: Output = None, url: Url = None) -> None:
    """What stands before the command. A data directory does not: `attune up` has one of its own."""
    choices_of(context).take(output, url)
