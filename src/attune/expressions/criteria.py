"""The operators of {field, operator, value}: each takes the value of the rule first, and refuses one that cannot work.

A test raises Unfit for a field of another type: it neither holds nor fails then.
"""

import re
from collections.abc import Callable
from datetime import datetime

from attune.expressions.arguments import a_string
from attune.expressions.budget import Budget
from attune.expressions.errors import ExpressionError, Unfit
from attune.expressions.operators import COMPARISONS, Operator, contains, look_up
from attune.expressions.patterns import Pattern, compile_pattern, compile_wildcard
from attune.expressions.values import Scope, is_number, same

Test = Callable[[object, Scope, Budget], bool]
Criterion = Callable[[object], Test]

ALIASES = {
    "eq": "equals",
    "neq": "not_equals",
    "gt": "greaterthan",
    "gte": "greater_or_equal",
    "lt": "lessthan",
    "lte": "less_or_equal",
    "in": "inside",
    "nin": "ninside",
    "regex": "matchregex",
}

_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def _equals(expected: object) -> Test:
    return lambda actual, _, budget: same(actual, expected, budget)


def _contains(expected: object) -> Test:
    return lambda actual, _, budget: contains(actual, expected, budget)


def _icontains(expected: object) -> Test:
    sought = _string(expected).casefold()

    def test(actual: object, _: Scope, budget: Budget) -> bool:
        if isinstance(actual, list):
            folded: object = [item.casefold() for item in actual if isinstance(item, str)]
        else:
            folded = a_string(actual).casefold()
        return contains(folded, sought, budget)

    return test


def _inside(expected: object) -> Test:
    if not isinstance(expected, list | str):
        raise ExpressionError("it must be an array")
    return lambda actual, _, budget: contains(expected, actual, budget)


def _negated(criterion: Criterion) -> Criterion:
    def negated(expected: object) -> Test:
        test = criterion(expected)
        return lambda actual, scope, budget: not test(actual, scope, budget)

    return negated


def _of_strings(compare: Callable[[str, str], bool], *, ignore_case: bool = False) -> Criterion:
    def criterion(expected: object) -> Test:
        wanted = _string(expected)
        if ignore_case:
            folded = wanted.casefold()
            return lambda actual, _scope, _budget: compare(a_string(actual).casefold(), folded)
        return lambda actual, _scope, _budget: compare(a_string(actual), wanted)

    return criterion


def _matching(compile_source: Callable[[str], Pattern]) -> Criterion:
    def criterion(expected: object) -> Test:
        pattern = compile_source(_string(expected))
        return lambda actual, _, budget: pattern.found_in(a_string(actual), budget)

    return criterion


def _ordered(symbol: str) -> Criterion:
    compare: Operator = COMPARISONS[symbol]

    def criterion(expected: object) -> Test:
        if not is_number(expected) and not isinstance(expected, str):
            raise ExpressionError("it must be a number or a string")
        return lambda actual, _, budget: bool(compare(actual, expected, budget))

    return criterion


def _time_difference(symbol: str) -> Criterion:
    """The seconds from the field's time to now, which is system.timestamp; they are negative in the future."""
    compare: Operator = COMPARISONS[symbol]

    def criterion(expected: object) -> Test:
        if not is_number(expected):
            raise ExpressionError("it must be a number of seconds")

        def test(actual: object, scope: Scope, budget: Budget) -> bool:
            there, now = look_up(scope.get("system"), "timestamp")
            if not there:
                raise Unfit("system.timestamp is missing")
            passed = (_moment(now) - _moment(actual)).total_seconds()
            return bool(compare(passed, expected, budget))

        return test

    return criterion


def _moment(value: object) -> datetime:
    written = value if isinstance(value, str) else ""
    try:
        if _MOMENT.fullmatch(written):
            return datetime.fromisoformat(written.upper())
    except ValueError:
        pass
    raise Unfit("it is no time in RFC 3339")


def _string(expected: object) -> str:
    if not isinstance(expected, str):
        raise ExpressionError("it must be a string")
    return expected


CRITERIA: dict[str, Criterion] = {
    "equals": _equals,
    "not_equals": _negated(_equals),
    "iequals": _of_strings(str.__eq__, ignore_case=True),
    "contains": _contains,
    "icontains": _icontains,
    "ncontains": _negated(_contains),
    "startswith": _of_strings(str.startswith),
    "istartswith": _of_strings(str.startswith, ignore_case=True),
    "endswith": _of_strings(str.endswith),
    "iendswith": _of_strings(str.endswith, ignore_case=True),
    "matchregex": _matching(compile_pattern),
    "imatchregex": _matching(lambda source: compile_pattern(source, ignore_case=True)),
    "matchwildcard": _matching(compile_wildcard),
    "greaterthan": _ordered(">"),
    "greater_or_equal": _ordered(">="),
    "lessthan": _ordered("<"),
    "less_or_equal": _ordered("<="),
    "inside": _inside,
    "ninside": _negated(_inside),
    "timediff_lt": _time_difference("<"),
    "timediff_gt": _time_difference(">"),
}
"""All but exists and nexists, which need no value."""
