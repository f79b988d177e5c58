"""What a condition asks of a single value before it can match: that it equals a constant.

An index over these finds the few among thousands of conditions that may match, without asking the others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from attune.expressions.fields import observed
from attune.expressions.values import Absent, Scope, identity


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is read, and under which `name` people are told of it.

    One that a `field` reads and one that an expression reads differ: only the first takes a number between dots for
    a place in an array.
    """

    written: str
    root: str
    name: str
    read: Callable[[Scope], object] = field(compare=False, repr=False)


class Refusal(NamedTuple):
    """The condition's words for a value that is another one: `statement`, then what is seen.

    `tells_absence`: where the value is missing, that alone is the reason.
    """

    statement: str
    tells_absence: bool


class Requirement(NamedTuple):
    """`value` is a stand-in of the constant. `refusal` is None where the words depend on other parts."""

    place: Place
    value: object
    refusal: Refusal | None


class Seen(NamedTuple):
    """`value` equals that of a requirement exactly if its comparison holds; `words` are for people."""

    value: object
    words: str
    is_absent: bool


_NOTHING = object()


def is_plain(constant: object) -> bool:
    """Whether equality with this constant can be looked up."""
    if isinstance(constant, float):
        return not math.isnan(constant)
    return constant is None or isinstance(constant, str | int)


def stand_in(constant: object) -> object:
    """Hashable, and equal for two plain values exactly if they are the same."""
    return identity(constant)


def seen_at(place: Place, scope: Scope) -> Seen:
    raw = place.read(scope)
    words = observed(place.root, place.name, raw)
    absent = isinstance(raw, Absent)
    value = _NOTHING if absent or not is_plain(raw) else identity(raw)
    return Seen(value, words, absent)


def refused(refusal: Refusal, seen: Seen) -> str | None:
    """Why a condition does not match that refuses this value; None where the value alone does not tell."""
    if seen.is_absent:
        return seen.words if refusal.tells_absence else None
    return f"{refusal.statement}: {seen.words}"
