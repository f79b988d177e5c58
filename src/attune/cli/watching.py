"""Looking again and again: a table that stays up to date on a terminal, a line for each change elsewhere."""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Final, Generic, TypeVar

import msgspec
import typer
from rich.live import Live
from rich.text import Text

from attune.cli.choices import Format
from attune.cli.rendering import Column, cell, table
from attune.cli.session import Session

T = TypeVar("T")

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Stay and show what changes.")]
Every = Annotated[
    float, typer.Option(min=0.01, metavar="SECONDS", help="How often --watch looks again.")
]
EVERY: Final = 1.0


class Watching(Generic[T]):
    """`key` says which item of a later look is the same thing. Ends with Ctrl-C, which is no failure."""

    def __init__(
        self,
        session: Session,
        columns: Sequence[Column[T]],
        key: Callable[[T], Hashable],
        *,
        empty: str,
    ) -> None:
        self._session = session
        self._columns = columns
        self._key = key
        self._empty = empty
        self._known: dict[Hashable, T] | None = None

    def run(self, look: Callable[[], list[T]], every: float) -> None:
        session = self._session
        try:
            if session.for_people and session.console.is_terminal:
                self._draw(look, every)
            else:
                self._tell(look, every)
        except KeyboardInterrupt:
            return

    def _draw(self, look: Callable[[], list[T]], every: float) -> None:
        with Live(console=self._session.console, auto_refresh=False) as live:
            while True:
                found = look()
                drawn = table(found, self._columns, self._session.now) if found else self._empty
                live.update(drawn, refresh=True)
                time.sleep(every)

    def _tell(self, look: Callable[[], list[T]], every: float) -> None:
        while True:
            found = {self._key(each): each for each in look()}
            if found != self._known:
                if self._session.for_people:
                    self._tell_people(found)
                else:
                    self._tell_programs(list(found.values()))
            self._known = found
            time.sleep(every)

    def _tell_people(self, found: dict[Hashable, T]) -> None:
        before = self._known or {}
        if not found:
            self._line(self._empty)
        for key, item in found.items():
            if before.get(key) != item:
                self._line(self._words(item))
        for key, item in before.items():
            if key not in found:
                self._line(f"{self._words(item, most=2)} is gone")

    def _tell_programs(self, found: list[T]) -> None:
        """A document for each change: JSON on one line, so that a program can read as they come."""
        if self._session.format is Format.YAML:
            typer.echo("---")
            self._session.dump(found)
        else:
            typer.echo(msgspec.json.encode(found).decode())

    def _line(self, words: str) -> None:
        at = self._session.now.astimezone().strftime("%H:%M:%S")
        self._session.console.print(Text(f"{at} {words}"), soft_wrap=True)

    def _words(self, item: T, most: int | None = None) -> str:
        now = self._session.now
        pairs = [(each.title.lower(), cell(each.value(item), now)) for each in self._columns[:most]]
        return " ".join(f"{name}={value.plain}" for name, value in pairs)
