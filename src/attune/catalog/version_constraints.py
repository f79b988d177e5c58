"""Which versions of a program will do, in the words that people know from Python and from Node.

One rule holds for every comparison: a version is compared in as many numbers as the constraint gives. So 3.11 is
every 3.11.x, `<=3.11` lets 3.11.9 in and `>3.11` does not. A pre-release counts as its release, because a worker that
has 3.14.0rc2 and nothing else is asked for 3.14.

    *  3.11  3.11.*  ==3.11  !=3.11  >=3.10,<4  >3  <=3.12  ~=3.10 (3.10 and later, below 4)
    ^1.2 (1.2 and later, below 2; ^0.2 below 0.3)  ~1.2 (every 1.2.x; ~1.2.3 from there)
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

Numbers = tuple[int, ...]
Rule = Callable[[Numbers], bool]

_ANY: Final = "*"
_PRINTED: Final = re.compile(r"(?<![\d.])\d{1,9}(?:\.\d{1,9})*", re.ASCII)
_PART: Final = re.compile(
    r"(?P<operator>==|!=|>=|<=|~=|>|<|=|\^|~)?\s*[vV]?(?P<numbers>\d{1,9}(?:\.\d{1,9})*)(?P<series>\.[*xX])?",
    re.ASCII,
)
_LONGEST: Final = 200


def constraint_fault(text: str) -> str | None:
    """Which rule a constraint breaks, or None."""
    if len(text) > _LONGEST:
        return f"must have at most {_LONGEST} characters"
    for part in text.split(","):
        fault = _part_fault(part.strip())
        if fault:
            return fault
    return None


@lru_cache(maxsize=4096)
def satisfies(version: str, constraint: str) -> bool:
    """`version` as a program prints it. What cannot be understood is satisfied by nothing, `*` by everything."""
    rules = _rules(constraint)
    if rules == ():
        return True
    found = _numbers(version)
    return found is not None and rules is not None and all(rule(found) for rule in rules)


def version_in(printed: str) -> str | None:
    """The version number in what a program prints about itself, without what surrounds it: the first that has a dot,
    else the first number."""
    found = _PRINTED.findall(printed)
    return next((one for one in found if "." in one), found[0] if found else None)


def order_of(version: str) -> Numbers:
    """Sorts versions from the oldest to the newest."""
    return _numbers(version) or ()


def _part_fault(part: str) -> str | None:
    if part == _ANY:
        return None
    if not part:
        return "must name a version between commas; * means any version"
    match = _PART.fullmatch(part)
    if match is None:
        return (
            f"{part!r} is no version constraint; use *, 3.11, >=3.10,<4, ==3.11, !=3.11, ~=3.10,"
            " ^1.2 or ~1.2"
        )
    operator, numbers, series = match["operator"], match["numbers"], match["series"]
    if series and operator not in (None, "=", "==", "!="):
        return f"{part!r}: .* goes with == and != only"
    if operator == "~=" and "." not in numbers:
        return f"{part!r}: ~= needs two numbers at least, as in ~={numbers}.0"
    return None


@lru_cache(maxsize=1024)
def _rules(constraint: str) -> tuple[Rule, ...] | None:
    """None if it cannot be understood."""
    if constraint_fault(constraint) is not None:
        return None
    parts = [part.strip() for part in constraint.split(",")]
    matches = [_PART.fullmatch(part) for part in parts if part != _ANY]
    return tuple(_rule(one["operator"] or "==", _split(one["numbers"])) for one in matches if one)


def _rule(operator: str, wanted: Numbers) -> Rule:
    size = len(wanted)
    match operator:
        case "!=":
            return lambda found: _cut(found, size) != wanted
        case ">=":
            return lambda found: _cut(found, size) >= wanted
        case "<=":
            return lambda found: _cut(found, size) <= wanted
        case ">":
            return lambda found: _cut(found, size) > wanted
        case "<":
            return lambda found: _cut(found, size) < wanted
        case "~=":
            return _within(wanted, size - 1)
        case "^":
            return _within(wanted, _first_that_counts(wanted))
        case "~":
            return _within(wanted, min(size, 2))
        case _:
            return lambda found: _cut(found, size) == wanted


def _within(lowest: Numbers, same: int) -> Rule:
    """From `lowest` on, as long as the first `same` numbers stay."""
    size = len(lowest)
    return lambda found: _cut(found, size) >= lowest and _cut(found, same) == lowest[:same]


def _first_that_counts(numbers: Numbers) -> int:
    """How many numbers a caret holds fast: up to the first that is not 0."""
    return next((place for place, one in enumerate(numbers, 1) if one), len(numbers))


def _cut(numbers: Numbers, size: int) -> Numbers:
    return numbers[:size] + (0,) * (size - len(numbers))


def _numbers(version: str) -> Numbers | None:
    found = version_in(version)
    return None if found is None else _split(found)


def _split(numbers: str) -> Numbers:
    return tuple(int(one) for one in numbers.split("."))
