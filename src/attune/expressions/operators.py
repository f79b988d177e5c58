"""What the operators do. Numbers, strings and arrays never turn into one another; Unfit says why there is no result."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from attune.expressions.budget import ITEM, Budget
from attune.expressions.errors import Unfit
from attune.expressions.values import LARGEST_INTEGER, is_number, named, same

Operator = Callable[[object, object, Budget], object]


def bounded(value: int | float) -> int | float:
    """Integers stay within 64 bits and other numbers finite: both survive JSON and every database."""
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise Unfit("the result is too large")
    elif not math.isfinite(value):
        raise Unfit("the result is no finite number")
    return value


def look_up(base: object, key: object) -> tuple[bool, object]:
    """Whether the data has such a key, and what is there. Only data is looked into, never a Python object."""
    if isinstance(base, dict):
        return (True, base[key]) if isinstance(key, str) and key in base else (False, None)
    if isinstance(base, list | str) and type(key) is int and -len(base) <= key < len(base):
        return True, base[key]
    return False, None


def contains(haystack: object, needle: object, budget: Budget) -> bool:
    """A part of a string, an item of an array, or a key of an object."""
    if isinstance(haystack, str):
        if not isinstance(needle, str):
            raise Unfit(f"a string cannot contain {named(needle)}")
        budget.spend(len(haystack))
        return needle in haystack
    if isinstance(haystack, dict):
        return isinstance(needle, str) and needle in haystack
    if isinstance(haystack, list):
        budget.spend(len(haystack) * ITEM)
        return any(same(item, needle, budget) for item in haystack)
    raise Unfit(f"{named(haystack)} contains nothing")


def _add(left: object, right: object, budget: Budget) -> object:
    if is_number(left) and is_number(right):
        return bounded(left + right)
    if isinstance(left, str) and isinstance(right, str):
        budget.spend(len(left) + len(right))
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        budget.spend((len(left) + len(right)) * ITEM)
        return left + right
    raise _mismatch("+", left, right)


def _divide(left: int | float, right: int | float) -> int | float:
    """Whole numbers that divide without a rest give a whole number."""
    if right == 0:
        raise Unfit("division by zero")
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


def _remainder(left: int | float, right: int | float) -> int | float:
    """It has the sign of the divisor, so that `n % 7` is a weekday before the epoch, too."""
    if right == 0:
        raise Unfit("division by zero")
    return left % right


def _numeric(symbol: str, compute: Callable[[int | float, int | float], int | float]) -> Operator:
    def apply(left: object, right: object, _: Budget) -> object:
        if not (is_number(left) and is_number(right)):
            raise _mismatch(symbol, left, right)
        return bounded(compute(left, right))

    return apply


def _ordered(symbol: str, compare: Callable[[Any, Any], bool]) -> Operator:
    def apply(left: object, right: object, budget: Budget) -> object:
        if isinstance(left, str) and isinstance(right, str):
            budget.spend(min(len(left), len(right)))
        elif not (is_number(left) and is_number(right)):
            raise _mismatch(symbol, left, right)
        return compare(left, right)

    return apply


def order(values: Sequence[object]) -> list[Any]:
    """The values, if they can be put in order: all numbers, or all strings."""
    if all(map(is_number, values)) or all(isinstance(value, str) for value in values):
        return list(values)
    raise Unfit("only numbers, or only strings, can be put in order")


def _mismatch(symbol: str, left: object, right: object) -> Unfit:
    return Unfit(f"{symbol} does not take {named(left)} and {named(right)}")


ARITHMETIC: dict[str, Operator] = {
    "+": _add,
    "-": _numeric("-", operator.sub),
    "*": _numeric("*", operator.mul),
    "/": _numeric("/", _divide),
    "%": _numeric("%", _remainder),
}

COMPARISONS: dict[str, Operator] = {
    "==": same,
    "!=": lambda left, right, budget: not same(left, right, budget),
    "<": _ordered("<", operator.lt),
    "<=": _ordered("<=", operator.le),
    ">": _ordered(">", operator.gt),
    ">=": _ordered(">=", operator.ge),
    "in": lambda left, right, budget: contains(right, left, budget),
    "not in": lambda left, right, budget: not contains(right, left, budget),
}
