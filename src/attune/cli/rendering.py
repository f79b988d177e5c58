"""How things look to people: tables, fields, times and values. Nothing else in the command line draws.

Text that came from elsewhere is shown as it is but for control characters: it cannot move the cursor.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

import msgspec
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.json import JSON
from rich.table import Table
from rich.text import Text

T = TypeVar("T")

_NOTHING: Final = "-"
_WIDTH_OF_A_PIPE: Final = 200
_STYLES: Final = {
    "completed": "green",
    "processed": "green",
    "active": "green",
    "failed": "red",
    "timeout": "red",
    "abandoned": "red",
    "error": "red",
    "offline": "red",
    "cancelled": "yellow",
    "canceling": "yellow",
    "disabled": "yellow",
    "cordoned": "yellow",
    "running": "cyan",
    "busy": "cyan",
}
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True)
class Column(Generic[T]):
    title: str
    value: Callable[[T], object]
    right: bool = False


def console_for(*, errors: bool = False) -> Console:
    """As wide as the terminal; what goes to a file or a pipe is not cut to eighty columns."""
    console = Console(stderr=errors, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_OF_A_PIPE)
    return console


def table(items: Iterable[T], columns: Sequence[Column[T]], now: datetime) -> Table:
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        side: JustifyMethod = "right" if column.right else "left"
        drawn.add_column(column.title, justify=side, overflow="fold")
    for item in items:
        drawn.add_row(*(cell(column.value(item), now) for column in columns))
    return drawn


def fields(pairs: Iterable[tuple[str, object]], now: datetime) -> Table:
    """Names and values below each other; what has no value is left out."""
    drawn = Table(box=None, pad_edge=False, show_header=False)
    drawn.add_column(style="bold", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != [] and value != {}:
            drawn.add_row(name, _value(value, now))
    return drawn


def cell(value: object, now: datetime) -> Text:
    match value:
        case None | "":
            return Text(_NOTHING, style="dim")
        case bool():
            return Text("yes" if value else "no", style="" if value else "dim")
        case datetime():
            return Text(relative(value, now))
        case StrEnum() | str():
            return Text(plain(value), style=_STYLES.get(value, ""))
        case _:
            return Text(plain(str(value)))


def section(title: str, body: RenderableType) -> RenderableType:
    return Group("", Text(title, style="bold"), body)


def pretty(value: Any) -> RenderableType:
    """A text as it is, anything else as JSON."""
    if isinstance(value, str):
        return Text(plain(value))
    return JSON(msgspec.json.encode(value).decode(), indent=2)


def relative(moment: datetime, now: datetime | None = None) -> str:
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    if abs(seconds) < 1:
        return "now"
    size, unit = next(each for each in _UNITS if abs(seconds) >= each[0])
    count = abs(seconds) // size
    return f"{count} {unit} ago" if seconds > 0 else f"in {count} {unit}"


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def plain(text: str) -> str:
    return "".join(each if each.isprintable() or each in "\n\t" else "�" for each in text)


def _value(value: object, now: datetime) -> RenderableType:
    match value:
        case datetime():
            exact = value.astimezone(UTC).isoformat(sep=" ", timespec="seconds")
            return Text(f"{exact.removesuffix('+00:00')} UTC ({relative(value, now)})")
        case dict() | list():
            return pretty(value)
        case _:
            return cell(value, now)
