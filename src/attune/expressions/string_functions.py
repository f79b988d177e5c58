"""Functions over strings, and those that turn values into strings."""

from attune.expressions.arguments import a_string, an_array
from attune.expressions.budget import ITEM, NEW_TEXT, Budget
from attune.expressions.errors import ExpressionError, Unfit
from attune.expressions.patterns import compile_pattern
from attune.expressions.values import kind, text


def string(budget: Budget, value: object) -> object:
    """The value as it reads inside a longer template."""
    return text(value, budget)


def type_of(_: Budget, value: object) -> object:
    return kind(value)


def lower(budget: Budget, value: object) -> object:
    return _read(value, budget).lower()


def upper(budget: Budget, value: object) -> object:
    return _read(value, budget).upper()


def trim(budget: Budget, value: object) -> object:
    return _read(value, budget).strip()


def split(budget: Budget, value: object, separator: object) -> object:
    given, between = _read(value, budget), _not_empty(separator)
    budget.spend(given.count(between) * NEW_TEXT)
    return given.split(between)


def join(budget: Budget, values: object, separator: object) -> object:
    items, between = an_array(values), a_string(separator)
    budget.spend(len(items) * (ITEM + len(between)))
    parts = [text(item, budget) for item in items]
    budget.spend(sum(map(len, parts)))
    return between.join(parts)


def replace(budget: Budget, value: object, old: object, new: object) -> object:
    given, sought, put = _read(value, budget), _not_empty(old), a_string(new)
    budget.spend(given.count(sought) * len(put))
    return given.replace(sought, put)


def starts_with(_: Budget, value: object, prefix: object) -> object:
    return a_string(value).startswith(a_string(prefix))


def ends_with(_: Budget, value: object, suffix: object) -> object:
    return a_string(value).endswith(a_string(suffix))


def match(budget: Budget, pattern: object, value: object) -> object:
    """Whether the pattern is found anywhere in the string."""
    given = a_string(value)
    try:
        compiled = compile_pattern(a_string(pattern))
    except ExpressionError as error:
        # A pattern from the data is the data's fault; one in the source was refused when it was compiled.
        raise Unfit(error.problem) from None
    return compiled.found_in(given, budget)


def check_pattern(pattern: object) -> None:
    if isinstance(pattern, str):
        compile_pattern(pattern)


def _read(value: object, budget: Budget) -> str:
    given = a_string(value)
    budget.spend(len(given))
    return given


def _not_empty(value: object) -> str:
    given = a_string(value)
    if not given:
        raise Unfit("the string to look for is empty")
    return given
