"""The `field` of a condition: a path into the scope, such as event.payload.hosts[0].name."""

import re
from dataclasses import dataclass

from attune.expressions.errors import ExpressionError
from attune.expressions.operators import look_up
from attune.expressions.tokens import LONGEST_SOURCE
from attune.expressions.values import Absent, Scope, shown

_STEP = re.compile(
    r"""
      \.? (?P<word> [^\s.\[\]{}'"]+ )
    | \[ (?P<place> -?[0-9]{1,9} ) \]
    | \[ (?: '(?P<single>[^']*)' | "(?P<double>[^"]*)" ) \]
    """,
    re.VERBOSE,
)

_PLACE = re.compile(r"[0-9]{1,9}")
_NEVER_TOLD = "keystore"


@dataclass(frozen=True, slots=True)
class Field:
    """Between dots every word is a key, `my-key` too, and a number is also a place in an array."""

    written: str
    root: str
    keys: tuple[str | int, ...]

    def read(self, scope: Scope) -> object:
        there, value = self.root in scope, scope.get(self.root)
        for key in self.keys:
            if not there:
                break
            there, value = look_up(value, _as_place(key) if isinstance(value, list) else key)
        return value if there else Absent(f"{self.written} is missing", (self.written,))


def parse_field(written: object) -> Field:
    if not isinstance(written, str) or len(written) > LONGEST_SOURCE:
        raise ExpressionError("it must be a path such as event.payload.severity")
    keys: list[str | int] = []
    position = 0
    while position < len(written):
        match = _STEP.match(written, position)
        # Only the first word stands without a dot, and only the others with one.
        if match is None or (match["word"] and (written[position] == ".") != bool(keys)):
            raise ExpressionError(
                "it must be a path such as event.payload.severity", column=position + 1
            )
        keys.append(_key(match))
        position = match.end()
    if not keys or not isinstance(keys[0], str):
        raise ExpressionError("it must be a path such as event.payload.severity", column=1)
    return Field(written, keys[0], tuple(keys[1:]))


def observed(root: str, written: str, value: object) -> str:
    """What was found there, for people; a secret is never told."""
    if root == _NEVER_TOLD:
        return f"{written} is secret"
    return value.problem if isinstance(value, Absent) else f"{written} is {shown(value)}"


def _as_place(key: str | int) -> str | int:
    return int(key) if isinstance(key, str) and _PLACE.fullmatch(key) else key


def _key(match: re.Match[str]) -> str | int:
    if match["place"]:
        return int(match["place"])
    return match["word"] or match["single"] or match["double"] or ""
