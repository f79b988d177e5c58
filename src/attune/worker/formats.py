"""Standard output as data. Output that does not fit its format gives no data, never a failure."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any, Final

import msgspec
import yaml

from attune.worker.model import OutputFormat

# To read a document of this size takes less time than to have another thread read it.
_SMALL: Final = 64 * 1024
# Parsing YAML holds the interpreter for about a second a megabyte.
_LARGEST_YAML: Final = 1024 * 1024
# An alias repeats a value without repeating its text: what is small to read may be endless to write.
_MOST_YAML_VALUES: Final = 200_000

_SAFE_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)


class _TooMuch(Exception):
    pass


async def read_data(text: Callable[[], str], format_: OutputFormat) -> Any:
    """The same without holding up the loop for a large output. `text` is not asked for where nobody reads it."""
    if format_ is OutputFormat.TEXT:
        return None
    stdout = text()
    if len(stdout) < _SMALL:
        return data_of(stdout, format_)
    return await asyncio.to_thread(data_of, stdout, format_)


def data_of(stdout: str, format_: OutputFormat) -> Any:
    """Null where there is none."""
    match format_:
        case OutputFormat.TEXT:
            return None
        case OutputFormat.JSON:
            return _json(stdout)
        case OutputFormat.JSONL:
            return _json_lines(stdout)
        case OutputFormat.YAML:
            return _yaml(stdout)


def _json(stdout: str) -> Any:
    """The whole if it is one document, else the last line that is not blank."""
    text = stdout.strip()
    return next(_documents((text, text.rpartition("\n")[2])), None)


def _json_lines(stdout: str) -> list[Any] | None:
    """Lines that are not JSON are left out; if that leaves nothing of some output, it was none."""
    lines = [line for line in stdout.split("\n") if line.strip()]
    found = list(_documents(lines))
    return found if found or not lines else None


def _documents(texts: Iterable[str]) -> Iterator[Any]:
    for text in texts:
        try:
            yield msgspec.json.decode(text)
        except _UNREADABLE:
            continue


def _yaml(stdout: str) -> Any:
    if len(stdout) > _LARGEST_YAML:
        return None
    try:
        read = yaml.load(stdout, _SAFE_LOADER)  # noqa: S506 - the safe one, in C where there is one
        return _plain(read, iter(range(_MOST_YAML_VALUES)))
    except (yaml.YAMLError, ValueError, _TooMuch, RecursionError):
        return None


def _plain(value: Any, budget: Iterator[int]) -> Any:
    """The value in JSON's own types: keys as strings, times as text."""
    if next(budget, None) is None:
        raise _TooMuch
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {_key(key): _plain(inner, budget) for key, inner in value.items()}
        case list() | tuple() | set():
            return [_plain(inner, budget) for inner in value]
        case date():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "replace")
    return str(value)


def _key(key: Any) -> str:
    match key:
        case str():
            return key
        case None:
            return "null"
        case bool():
            return "true" if key else "false"
    return str(key)
