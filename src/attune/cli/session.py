"""One run of a command that talks to a server: its client, and how it says what it found."""

import importlib
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import typer
from rich.console import Console, RenderableType

from attune.cli.choices import Choices, Format
from attune.cli.rendering import Column, console_for, fields, section, table
from attune.client.client import Client

T = TypeVar("T")


class Session:
    """Standard output is for what was asked for: for a program it is one document and nothing else."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.format = choices.output or Format.TABLE
        self.url = choices.url

    @cached_property
    def client(self) -> Client:
        if self._choices.connect is not None:
            return self._choices.connect(self._choices)
        return Client.from_environment(
            os.environ, url=self._choices.url, data_dir=self._choices.data_dir
        )

    @cached_property
    def console(self) -> Console:
        return console_for()

    @property
    def for_people(self) -> bool:
        return self.format is Format.TABLE

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()

    def show_all(self, items: Iterable[T], columns: Sequence[Column[T]], *, empty: str) -> None:
        """A table, or in words that there is nothing."""
        found = list(items)
        if not self.for_people:
            self.dump(found)
        elif found:
            self.console.print(table(found, columns, self.now))
        else:
            self.console.print(empty)

    def show_one(
        self,
        item: object,
        pairs: Iterable[tuple[str, object]],
        *sections: tuple[str, RenderableType],
    ) -> None:
        if not self.for_people:
            self.dump(item)
            return
        self.console.print(fields(pairs, self.now))
        for title, body in sections:
            self.console.print(section(title, body))

    def tell(self, sentence: str, item: object) -> None:
        """What was done: a sentence for people, the thing itself for programs."""
        if self.for_people:
            self.console.print(sentence, markup=False)
        else:
            self.dump(item)

    def note(self, sentence: str) -> None:
        """Something beside the result."""
        typer.echo(sentence, err=True)

    def dump(self, value: Any) -> None:
        if self.format is Format.YAML:
            dumped = _yaml(msgspec.to_builtins(value))
        else:
            dumped = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        typer.echo(dumped)


def _yaml(value: Any) -> str:
    """Loaded when it is wanted: no other form of output has to wait for it."""
    yaml = importlib.import_module("yaml")
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n")
