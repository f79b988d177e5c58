"""YAML as JSON data, read with YAML 1.2's idea of a scalar and with bounds.

Only `true` and `false` are truth values, `no` and `12:30` are text, a date is text, and a key is the text
that was written. A document is bounded in size, depth and number of values, where an alias counts as often
as it is used, so that a few lines cannot grow into gigabytes. Nothing is ever constructed but plain data.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from attune.catalog.refs import shown

MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 50
MAX_VALUES: Final = 100_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_A_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_UNFIT = re.compile("[\x00\ud800-\udfff]")
_WORDS: Final = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
}  # fmt: skip
_LARGEST: Final = 2**63
_TAG: Final = "tag:yaml.org,2002:"


class Unreadable(ValueError):
    """Why a document is refused, with the line where it went wrong."""


def read_document(content: bytes) -> Any:
    """The one document of a file as JSON data; None for an empty file. Raises `Unreadable`, nothing else."""
    if len(content) > MAX_BYTES:
        raise Unreadable(f"the file is larger than {MAX_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"the file is not UTF-8 (byte {error.start})") from error
    try:
        return _Reader(yaml.parse(text, Loader=_LOADER)).document()
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        line = f"line {place.line + 1}: " if place else ""
        raise Unreadable(f"{line}{error.problem or error.context or 'not YAML'}") from error
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {' '.join(str(error).split())}") from error


@dataclass(slots=True)
class _Anchored:
    """What an anchor names, and how many values it stands for; open while it is still being read."""

    value: Any = None
    count: int = 0
    open: bool = True


@dataclass(slots=True)
class _Reader:
    events: Iterator[Any]
    count: int = 0
    anchors: dict[str, _Anchored] = field(default_factory=dict)

    def document(self) -> Any:
        value = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _unreadable(event, "a file holds one document, this is a second")
                value = self._value(next(self.events), 1)
        return value

    def _value(self, event: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _unreadable(event, f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self.count
        self._spend(event, 1)
        anchored = _Anchored()
        if event.anchor:
            self.anchors[event.anchor] = anchored
        anchored.value = self._read(event, depth)
        anchored.count, anchored.open = self.count - before, False
        return anchored.value

    def _read(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            _check_tag(event, "seq")
            return list(self._items(depth))
        _check_tag(event, "map")
        return self._mapping(depth)

    def _items(self, depth: int) -> Iterator[Any]:
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            yield self._value(event, depth + 1)

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in found:
                raise _unreadable(event, f"the key {shown(key)} stands there twice")
            found[key] = self._value(next(self.events), depth + 1)
        return found

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent) or event.anchor:
            raise _unreadable(event, "a key must be plain text")
        if event.value == "<<" and event.implicit[0]:
            raise _unreadable(event, "merge keys (<<) are not known here; write the fields out")
        return _text(event)

    def _alias(self, event: Any) -> Any:
        anchored = self.anchors.get(event.anchor)
        if anchored is None or anchored.open:
            raise _unreadable(event, f"the alias {shown(event.anchor)} has nothing to name")
        self._spend(event, anchored.count)
        return anchored.value

    def _spend(self, event: Any, count: int) -> None:
        self.count += count
        if self.count > MAX_VALUES:
            raise _unreadable(event, f"more than {MAX_VALUES} values, aliases counted in full")


def _scalar(event: Any) -> Any:
    if event.tag in _TYPED:
        return _TYPED[event.tag](event)
    if event.tag not in (None, "!"):
        raise _unreadable(event, f"the tag {shown(event.tag)} is not known here")
    return _plain(event) if event.implicit[0] else _text(event)


def _plain(event: Any) -> Any:
    text = event.value
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
        return _integer(event)
    if _NUMBER.fullmatch(text) or _NOT_A_NUMBER.fullmatch(text):
        return _number(event)
    return _text(event)


def _integer(event: Any) -> int:
    text = event.value
    if len(text) > 25:
        raise _unreadable(event, "the number is too large")
    if not (_INTEGER.fullmatch(text) or _BASED.fullmatch(text)):
        raise _unreadable(event, f"{shown(text)} is not an integer")
    value = int(text, 0) if _BASED.fullmatch(text) else int(text)
    if not -_LARGEST <= value < _LARGEST:
        raise _unreadable(event, "the number is too large")
    return value


def _number(event: Any) -> float:
    if not _NUMBER.fullmatch(event.value) or not math.isfinite(value := float(event.value)):
        raise _unreadable(event, f"{shown(event.value)} is not a number that JSON has")
    return value


def _boolean(event: Any) -> bool:
    value = _WORDS.get(event.value)
    if not isinstance(value, bool):
        raise _unreadable(event, f"{shown(event.value)} is neither true nor false")
    return value


def _text(event: Any) -> str:
    if _UNFIT.search(event.value):
        raise _unreadable(event, "the text holds a character that cannot be stored")
    return str(event.value)


_TYPED: Final[dict[str, Callable[[Any], Any]]] = {
    f"{_TAG}str": _text,
    f"{_TAG}int": _integer,
    f"{_TAG}float": _number,
    f"{_TAG}bool": _boolean,
    f"{_TAG}null": lambda _: None,
}


def _check_tag(event: Any, expected: str) -> None:
    if event.tag not in (None, "!", f"{_TAG}{expected}"):
        raise _unreadable(event, f"the tag {shown(event.tag)} is not known here")


def _unreadable(event: Any, why: str) -> Unreadable:
    return Unreadable(f"line {event.start_mark.line + 1}: {why}")
