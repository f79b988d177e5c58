"""Writes that nobody waits for: PostgreSQL takes any number of them in one statement, and so in one round trip.

All of them see the rows as they were before the first, and none may touch a row that another touches.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_NUMBER: Final = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Write:
    """One statement in PostgreSQL's words. `take` gets its rows, as JSON; null where it tells none."""

    sql: str
    values: Sequence[Any]
    take: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """Many writes as one statement, with a column for each that tells something."""

    sql: str
    values: Sequence[Any]
    takes: Sequence[Callable[[str], None]]


def together(writes: Sequence[Write]) -> Joint:
    takes = [one.take for one in writes if one.take is not None]
    if len(writes) == 1 and not takes:
        return Joint(writes[0].sql, writes[0].values, ())
    sql = _together(tuple((one.sql, one.take is not None) for one in writes))
    return Joint(sql, [value for one in writes for value in one.values], takes)


@cache
def _together(statements: tuple[tuple[str, bool], ...]) -> str:
    parts: list[str] = []
    taken = 0
    for number, (sql, _) in enumerate(statements):
        parts.append(f"write_{number} AS ({_renumbered(sql, taken)})")
        taken += max((int(each) for each in _NUMBER.findall(sql)), default=0)
    answers = [
        f"(SELECT coalesce(json_agg(w), '[]')::text FROM write_{number} w)"
        for number, (_, answers) in enumerate(statements)
        if answers
    ]
    return f"WITH {', '.join(parts)} SELECT {', '.join(answers) or '1'}"


def _renumbered(sql: str, by: int) -> str:
    return _NUMBER.sub(lambda match: f"${int(match[1]) + by}", sql)
