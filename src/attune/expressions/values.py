"""The values of the language: JSON, and the marker for a value that is not there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

import msgspec

from attune.expressions.budget import DEPTH, ITEM, NEW_TEXT, Budget
from attune.expressions.errors import TooCostly, Unfit

Scope = Mapping[str, object]
"""What the names mean: JSON data."""

LARGEST_INTEGER = 2**63 - 1
_LONGEST_SHOWN = 80
_CHARACTERS_PER_UNIT = 8


@dataclass(frozen=True, slots=True)
class Absent:
    """No value, and why: a name is missing (`names`), or an operation had none for its operands.

    It spreads through operators and functions, so that nothing over a missing field ever holds; `or` alone
    puts another value in its place. `undecided` tells an open comparison from a value that is not there:
    `missing or 0` is 0, but `missing == 1 or false` stays open, and so does its negation.
    """

    problem: str
    names: tuple[str, ...] = ()
    column: int = 1
    undecided: bool = False


def absent_among(values: Iterable[object]) -> Absent | None:
    """The absent ones as one, with the names of all."""
    found = None
    for value in values:
        if isinstance(value, Absent):
            found = both_absent(found, value) if found else value
    return found


def both_absent(left: Absent, right: Absent) -> Absent:
    return replace(
        left, names=left.names + right.names, undecided=left.undecided or right.undecided
    )


def is_number(value: object) -> TypeGuard[int | float]:
    """Booleans are no numbers, although Python counts them as such."""
    return type(value) is int or type(value) is float


def kind(value: object) -> str:
    """The type's name in JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    raise Unfit(f"{type(value).__name__} is no JSON value")


def named(value: object) -> str:
    """The type in a sentence: a string, an array, null."""
    name = kind(value)
    if name == "null":
        return name
    return f"an {name}" if name[0] in "ao" else f"a {name}"


def same(left: object, right: object, budget: Budget) -> bool:
    """Equality without coercion, at every depth: 1 is 1.0, but neither true nor "1"."""
    if isinstance(left, str) and isinstance(right, str):
        budget.spend(min(len(left), len(right)) // _CHARACTERS_PER_UNIT)
        return left == right
    if is_number(left) and is_number(right):
        return left == right
    if type(left) is not type(right):
        return False
    if isinstance(left, list | dict):
        measure(left, budget)
        measure(right, budget)
        return identity(left) == identity(right)
    return left == right


def identity(value: object) -> object:
    """A hashable stand-in, equal for two values exactly if they are the same. The value has been measured."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, list):
        return list, tuple(map(identity, value))
    if isinstance(value, dict):
        return dict, frozenset((key, identity(item)) for key, item in value.items())
    return value


def measure(value: object, budget: Budget) -> None:
    """Pays for a value with all that is in it; whatever has been measured may be walked recursively."""
    level = [value]
    for _ in range(DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, str):
                budget.spend(len(item))
            elif isinstance(item, list):
                budget.spend(len(item) * ITEM)
                below.extend(item)
            elif isinstance(item, dict):
                budget.spend(len(item) * (ITEM + NEW_TEXT))
                below.extend(item.keys())
                below.extend(item.values())
        if not below:
            return
        level = below
    raise TooCostly(f"the data is nested more than {DEPTH} deep")


def text(value: object, budget: Budget) -> str:
    """A value inside a longer string: strings as they are, null as nothing, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    measure(value, budget)
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        # Neither JSON documents nor this language make such values; a scope put together by hand may.
        raise Unfit(f"this {type(value).__name__} cannot be written as JSON") from None


def shown(value: object) -> str:
    """A value in a sentence for people: short, whatever its size."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]!r}…"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "a very large number"
    return f"{value!r:.{_LONGEST_SHOWN}}"
