"""Writes that nobody waits for: PostgreSQL takes any number of them in one statement, and so in one round trip.

All of them see the rows as they were before the first, and none may touch a row that another touches.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_TARGET: Final = re.compile(r"\s*(?:UPDATE|DELETE\s+FROM|INSERT\s+INTO)\s+(\w+)")
_NUMBER: Final = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Write:
    """One statement in PostgreSQL's words."""

    sql: str
    values: Sequence[Any]

    @property
    def target(self) -> str | None:
        """The table that it changes, if it changes any."""
        return _target(self.sql)


def together(writes: Sequence[Write]) -> Write:
    """All of these as one; the last may answer with rows."""
    if len(writes) == 1:
        return writes[0]
    sql = _together(tuple(one.sql for one in writes))
    return Write(sql, [value for one in writes for value in one.values])


@cache
def _target(sql: str) -> str | None:
    found = _TARGET.match(sql)
    return found[1] if found else None


@cache
def _together(statements: tuple[str, ...]) -> str:
    parts: list[str] = []
    taken = 0
    for sql in statements:
        parts.append(_renumbered(sql, taken))
        taken += max((int(number) for number in _NUMBER.findall(sql)), default=0)
    *first, last = parts
    named = ", ".join(f"write_{number} AS ({part})" for number, part in enumerate(first, start=1))
    return f"WITH {named} {last}"


def _renumbered(sql: str, by: int) -> str:
    return _NUMBER.sub(lambda match: f"${int(match[1]) + by}", sql)
