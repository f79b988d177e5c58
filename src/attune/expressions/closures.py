"""Closures that evaluate the nodes of an expression. Each takes the scope and the budget, and never raises but
for the budget's sake: what has no value is Absent, and says why.
"""

from collections.abc import Callable
from dataclasses import replace

from attune.expressions.budget import Budget
from attune.expressions.errors import ExpressionError, Unfit
from attune.expressions.operators import Operator, look_up
from attune.expressions.syntax import Path
from attune.expressions.values import Absent, Scope, absent_among, both_absent, is_number

Evaluate = Callable[[Scope, Budget], object]


def path(node: Path) -> Evaluate:
    name = node.written
    missing = Absent(f"{name} is missing", (name,), node.start + 1)
    root, keys = node.root, node.keys

    def evaluate(scope: Scope, _: Budget) -> object:
        if root not in scope:
            return missing
        value = scope[root]
        for key in keys:
            there, value = look_up(value, key)
            if not there:
                return missing
        return value

    return evaluate


def access(base: Evaluate, keys: list[Evaluate], text: str, column: int) -> Evaluate:
    missing = Absent(f"{text} is missing", (text,), column)

    def evaluate(scope: Scope, budget: Budget) -> object:
        value = base(scope, budget)
        chosen = [key(scope, budget) for key in keys]
        if absent := absent_among((value, *chosen)):
            return absent
        for key in chosen:
            there, value = look_up(value, key)
            if not there:
                return missing
        return value

    return evaluate


def listing(items: list[Evaluate]) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        values = [item(scope, budget) for item in items]
        return absent_among(values) or values

    return evaluate


def call(
    function: Callable[..., object], arguments: list[Evaluate], name: str, column: int
) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        values = [argument(scope, budget) for argument in arguments]
        if absent := absent_among(values):
            return absent
        try:
            return function(budget, *values)
        except Unfit as unfit:
            return Absent(f"{name}(): {unfit}", column=column)
        except OverflowError:
            return Absent(f"{name}(): the result is too large", column=column)
        except ExpressionError as error:
            raise error.placed(column) from None

    return evaluate


def comparison(compare: Operator, left: Evaluate, right: Evaluate, column: int) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        first, second = left(scope, budget), right(scope, budget)
        if absent := absent_among((first, second)):
            return replace(absent, undecided=True)
        try:
            return compare(first, second, budget)
        except Unfit as unfit:
            return Absent(str(unfit), column=column, undecided=True)
        except ExpressionError as error:
            raise error.placed(column) from None

    return evaluate


def arithmetic(first: Evaluate, steps: list[tuple[Operator, Evaluate]], column: int) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        values = [first(scope, budget), *(operand(scope, budget) for _, operand in steps)]
        if absent := absent_among(values):
            return absent
        result = values[0]
        try:
            for (apply, _), value in zip(steps, values[1:], strict=True):
                result = apply(result, value, budget)
        except Unfit as unfit:
            return Absent(str(unfit), column=column)
        except OverflowError:
            return Absent("the result is too large", column=column)
        except ExpressionError as error:
            raise error.placed(column) from None
        return result

    return evaluate


def minus(operand: Evaluate, column: int) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        value = operand(scope, budget)
        if isinstance(value, Absent):
            return value
        if not is_number(value):
            return Absent("- needs a number", column=column)
        return -value

    return evaluate


def negation(operand: Evaluate) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        value = operand(scope, budget)
        return replace(value, undecided=True) if isinstance(value, Absent) else not value

    return evaluate


def any_of(operands: list[Evaluate]) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        found = operands[0](scope, budget)
        for operand in operands[1:]:
            if found and not isinstance(found, Absent):
                return found
            value = operand(scope, budget)
            if not isinstance(found, Absent):
                found = value
            elif isinstance(value, Absent):
                found = both_absent(found, value)
            elif value or not found.undecided:
                found = value
        return found

    return evaluate


def all_of(operands: list[Evaluate]) -> Evaluate:
    def evaluate(scope: Scope, budget: Budget) -> object:
        found = operands[0](scope, budget)
        for operand in operands[1:]:
            if not found:
                return found
            value = operand(scope, budget)
            if not isinstance(found, Absent):
                found = value
            elif isinstance(value, Absent):
                found = both_absent(found, value)
            elif not value:
                found = value
        return found

    return evaluate
