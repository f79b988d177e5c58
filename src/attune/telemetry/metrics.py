"""Metrics as Prometheus reads them: families of numbers, written in its text format.

There are no instruments that count along: what is shown is read from rows when somebody asks, so it cannot drift,
survives restarts and is the same in every process.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Point(msgspec.Struct, frozen=True):
    """One line. `suffix` is what a histogram's lines have after the name of their family."""

    value: float
    labels: Labels = {}
    suffix: str = ""


class Family(msgspec.Struct, frozen=True):
    """`help` is one sentence, with the unit."""

    name: str
    kind: Kind
    help: str
    points: tuple[Point, ...]


class Histogram:
    """Counts of observations up to each bound. It only grows, as Prometheus wants it."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(sorted(bounds))
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def points(self, labels: Labels) -> Iterator[Point]:
        """The lines of one set of labels: how many up to each bound, all of them together, and their sum."""
        total = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            yield Point(total, {**labels, "le": _number(bound)}, "_bucket")
        yield Point(self._sum, labels, "_sum")
        yield Point(total, labels, "_count")


def gauge(name: str, description: str, value: float, labels: Labels | None = None) -> Family:
    return Family(name, Kind.GAUGE, description, (Point(value, labels or {}),))


def counter(name: str, description: str, value: float) -> Family:
    return Family(name, Kind.COUNTER, description, (Point(value),))


def exposition(families: Iterable[Family]) -> str:
    return "".join(_lines(family) for family in families)


def _lines(family: Family) -> str:
    described = family.help.replace("\\", r"\\").replace("\n", r"\n")
    head = f"# HELP {family.name} {described}\n# TYPE {family.name} {family.kind}\n"
    return head + "".join(_line(family.name, point) for point in family.points)


def _line(name: str, point: Point) -> str:
    named = ",".join(f'{label}="{_quoted(value)}"' for label, value in point.labels.items())
    labels = f"{{{named}}}" if named else ""
    return f"{name}{point.suffix}{labels} {_number(point.value)}\n"


def _quoted(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
