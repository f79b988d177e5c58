"""Functions that make or count numbers."""

import math
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from attune.expressions.arguments import a_number, a_whole_number, an_array
from attune.expressions.budget import ITEM, Budget
from attune.expressions.errors import Unfit
from attune.expressions.operators import bounded, order
from attune.expressions.values import is_number, named

_NUMBER = re.compile(r"[+-]?[0-9]+(?P<rest>\.[0-9]+)?(?P<power>[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400
_MOST_DIGITS = 15
_ROUNDING = Context(prec=40, rounding=ROUND_HALF_UP)
_WHOLE_FROM = 2.0**53
"""A float this large has no digits behind the point."""


def number(_: Budget, value: object) -> object:
    """Numbers as they are, true and false as 1 and 0, and strings that read as a number."""
    if is_number(value):
        return value
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        raise Unfit(f"{named(value)} is no number")
    match = _NUMBER.fullmatch(value.strip()) if len(value) <= _LONGEST_NUMBER else None
    if match is None:
        raise Unfit("the string is no number")
    return bounded(float(match[0]) if match["rest"] or match["power"] else int(match[0]))


def whole_number(budget: Budget, value: object) -> object:
    """The number without what stands behind its point."""
    return _to_whole(math.trunc, number(budget, value))


def absolute(_: Budget, value: object) -> object:
    return abs(a_number(value))


def floor(_: Budget, value: object) -> object:
    return _to_whole(math.floor, value)


def ceil(_: Budget, value: object) -> object:
    return _to_whole(math.ceil, value)


def rounded(_: Budget, value: object, digits: object = 0) -> object:
    """Half away from zero, of the number as it is written: round(2.675, 2) is 2.68."""
    given, places = a_number(value), a_whole_number(digits)
    if not 0 <= places <= _MOST_DIGITS:
        raise Unfit(f"rounds to 0 to {_MOST_DIGITS} digits")
    if isinstance(given, int) or abs(given) >= _WHOLE_FROM or not math.isfinite(given):
        return given if places else _to_whole(math.trunc, given)
    exact = Decimal(repr(given)).quantize(Decimal(1).scaleb(-places), context=_ROUNDING)
    return float(exact) if places else int(exact)


def minimum(budget: Budget, *values: object) -> object:
    return min(_candidates(budget, values))


def maximum(budget: Budget, *values: object) -> object:
    return max(_candidates(budget, values))


def total(budget: Budget, values: object) -> object:
    items = an_array(values)
    budget.spend(len(items) * ITEM)
    return bounded(sum(a_number(item) for item in items))


def _candidates(budget: Budget, values: Sequence[object]) -> list[Any]:
    """Either the arguments themselves, or the items of the only one."""
    candidates = an_array(values[0]) if len(values) == 1 else values
    budget.spend(len(candidates) * ITEM)
    if not candidates:
        raise Unfit("the array is empty")
    return order(candidates)


def _to_whole(convert: Callable[[int | float], int], value: object) -> int | float:
    given = a_number(value)
    if isinstance(given, float) and not math.isfinite(given):
        raise Unfit("the number is not finite")
    return bounded(convert(given))
