"""What was measured and counted while probes were in place."""

import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.cost.spans import LOOP, Span

ELSEWHERE: Final = "commit"

_FRAME: Final = ("BEGIN", "COMMIT", "ROLLBACK")

_CHANGE: Final = re.compile(r"(?<!FOR )(?<!KEY )\b(INSERT INTO|UPDATE|DELETE FROM) (\w+)")
_WORDS: Final = {"INSERT INTO": "into", "UPDATE": "changed in", "DELETE FROM": "deleted from"}
_NAMES: Final = re.compile(r"^(.*?)\((?:\w+, )+\w+\)(?= (?:SELECT|VALUES))")


@dataclass
class Stage:
    """Seconds, of all calls together. `sql_` is what its statements took, which is not in the others.

    `loop_waited` is what whoever asked for it waited on the loop, `store_waited` what held up the store's thread.
    """

    calls: int = 0
    loop_cpu: float = 0.0
    loop_waited: float = 0.0
    store_cpu: float = 0.0
    store_waited: float = 0.0
    sql_cpu: float = 0.0
    sql_waited: float = 0.0


@dataclass
class Statement:
    stage: str
    sql: str
    calls: int = 0
    rows: int = 0
    cpu: float = 0.0
    waited: float = 0.0

    @property
    def seconds(self) -> float:
        return self.cpu + self.waited


@dataclass
class Ledger:
    """`missing` are places that the probes know and the code no longer has."""

    stages: dict[str, Stage] = field(default_factory=dict)
    statements: dict[tuple[str, str], Statement] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] += number

    def note_stage(self, span: Span) -> None:
        with self._lock:
            stage = self.stages.setdefault(span.name, Stage())
            stage.calls += 1
            _add(stage, span)

    def note_around(self, span: Span) -> None:
        """What the way to a step and back costs; the step is noted itself."""
        with self._lock:
            _add(self.stages.setdefault(span.name, Stage()), span)

    def note_statement(self, span: Span, rows: int, *, counts: bool = True) -> None:
        """`counts` is false for the frame of a transaction, which is counted as a commit."""
        name = span.parent.name if span.parent else ELSEWHERE
        text = shortened(span.name)
        with self._lock:
            found = self.statements.setdefault((name, text), Statement(name, text))
            found.calls += 1
            found.rows += rows
            found.cpu += span.cpu
            found.waited += span.waited
            stage = self.stages.setdefault(name, Stage())
            stage.sql_cpu += span.cpu
            stage.sql_waited += span.waited
            if counts:
                self.counts["statements"] += 1
                self.counts[rows_label(text)] += rows

    def note_round_trip(self, span: Span, calls: Sequence[tuple[str, int]]) -> None:
        """Statements that went together, each with how many rows it told or touched."""
        self.note_statement(span, sum(rows for _, rows in calls), counts=False)
        with self._lock:
            self.counts["round trips"] += 1
            for sql, rows in calls:
                if not sql.startswith(_FRAME):
                    self.counts["statements"] += 1
                    self.counts[rows_label(sql)] += rows

    def slowest(self) -> list[Statement]:
        return sorted(self.statements.values(), key=lambda one: one.seconds, reverse=True)


def _add(stage: Stage, span: Span) -> None:
    if span.place == LOOP:
        stage.loop_cpu += span.cpu
        stage.loop_waited += span.waited
    else:
        stage.store_cpu += span.cpu
        stage.store_waited += span.waited


def shortened(sql: str) -> str:
    """In one line, and without the names of the columns of an insert."""
    return _NAMES.sub(r"\1(…)", " ".join(sql.split()))


def rows_label(sql: str) -> str:
    """Which count the rows of a statement belong to."""
    change = _CHANGE.search(sql)
    if change is None:
        return "rows read"
    return f"rows {_WORDS[change[1]]} {change[2]}"
