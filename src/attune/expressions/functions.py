"""The table of functions that an expression may call."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from attune.expressions import array_functions as arrays
from attune.expressions import number_functions as numbers
from attune.expressions import string_functions as strings
from attune.expressions.budget import Budget
from attune.expressions.operators import contains
from attune.expressions.values import Scope

_ANY_NUMBER = 255
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Function:
    """`call` gets the budget and the arguments; it raises Unfit if it has no result for them.

    `check` sees a literal first argument when the expression is compiled, and may refuse it.
    """

    call: Callable[..., object]
    least: int
    most: int
    check: Callable[[object], None] | None = None


@dataclass(frozen=True, slots=True)
class Scoped:
    """A function of the caller's, without arguments, that reads its answer from the scope."""

    call: Callable[[Scope], object]


class Functions(Mapping[str, Function | Scoped]):
    """Fixed once made, and equal only to itself: compiled expressions are kept by the table they were made with."""

    def __init__(self, table: Mapping[str, Function | Scoped]) -> None:
        self._table = dict(table)

    def __getitem__(self, name: str) -> Function | Scoped:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def extended(self, functions: Mapping[str, Callable[[Scope], object]]) -> "Functions":
        """With functions of the caller's, such as result() in a workflow; make it once, it is a key of the cache."""
        return Functions(self._table | {name: Scoped(call) for name, call in functions.items()})


def _contains(budget: Budget, haystack: object, needle: object) -> object:
    return contains(haystack, needle, budget)


def _truth(_: Budget, value: object) -> object:
    """As a condition takes it, except that the words true and false mean what they say."""
    if isinstance(value, str) and len(value) <= len("false"):
        return _TRUTHS.get(value.lower(), bool(value))
    return bool(value)


BUILTIN = Functions(
    {
        "string": Function(strings.string, 1, 1),
        "number": Function(numbers.number, 1, 1),
        "int": Function(numbers.whole_number, 1, 1),
        "bool": Function(_truth, 1, 1),
        "type_of": Function(strings.type_of, 1, 1),
        "length": Function(arrays.length, 1, 1),
        "keys": Function(arrays.keys, 1, 1),
        "values": Function(arrays.values, 1, 1),
        "abs": Function(numbers.absolute, 1, 1),
        "floor": Function(numbers.floor, 1, 1),
        "ceil": Function(numbers.ceil, 1, 1),
        "round": Function(numbers.rounded, 1, 2),
        "min": Function(numbers.minimum, 1, _ANY_NUMBER),
        "max": Function(numbers.maximum, 1, _ANY_NUMBER),
        "sum": Function(numbers.total, 1, 1),
        "lower": Function(strings.lower, 1, 1),
        "upper": Function(strings.upper, 1, 1),
        "trim": Function(strings.trim, 1, 1),
        "split": Function(strings.split, 2, 2),
        "join": Function(strings.join, 2, 2),
        "replace": Function(strings.replace, 3, 3),
        "starts_with": Function(strings.starts_with, 2, 2),
        "ends_with": Function(strings.ends_with, 2, 2),
        "match": Function(strings.match, 2, 2, strings.check_pattern),
        "contains": Function(_contains, 2, 2),
        "reversed": Function(arrays.backwards, 1, 1),
        "sort": Function(arrays.sort, 1, 1),
        "unique": Function(arrays.unique, 1, 1),
        "flat": Function(arrays.flat, 1, 1),
        "zip": Function(arrays.pairs, 1, _ANY_NUMBER),
        "range": Function(arrays.number_range, 1, 3),
        "slice": Function(arrays.cut, 2, 3),
        "index_of": Function(arrays.index_of, 2, 2),
        "count": Function(arrays.count, 2, 2),
        "merge": Function(arrays.merge, 1, _ANY_NUMBER),
        "chunks": Function(arrays.chunks, 2, 2),
    }
)
