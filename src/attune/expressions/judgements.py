"""The tree of a condition: each node judges a scope, and says why.

A judgement is true, false or open; it is open over a field that is missing or of another type, and what is
open matches neither as it is nor negated.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from attune.expressions import closures
from attune.expressions.budget import Budget
from attune.expressions.criteria import Test
from attune.expressions.errors import ExpressionError, Unfit
from attune.expressions.fields import Field, observed
from attune.expressions.language import Clause, Expression
from attune.expressions.values import Absent, Scope

_LONGEST_REASON = 500
_MOST_VALUES = 4


class Judgement(NamedTuple):
    """`truth` is None while open; `reason` tells why it is not true."""

    truth: bool | None
    reason: str = ""


HOLDS = Judgement(truth=True)


def _fails(reason: str) -> Judgement:
    return Judgement(truth=False, reason=reason)


@dataclass(frozen=True, slots=True)
class Check(ABC):
    """`statement` is what must hold, as people read it."""

    statement: str

    @abstractmethod
    def judge(self, scope: Scope, budget: Budget, /) -> Judgement: ...


@dataclass(frozen=True, slots=True)
class Always(Check):
    def judge(self, _scope: Scope, _budget: Budget, /) -> Judgement:
        return HOLDS


@dataclass(frozen=True, slots=True)
class Presence(Check):
    field: Field
    wanted: bool

    def judge(self, scope: Scope, _budget: Budget, /) -> Judgement:
        found = not isinstance(self.field.read(scope), Absent)
        if found is self.wanted:
            return HOLDS
        return _fails(f"{self.field.written} is {'there' if found else 'missing'}")


@dataclass(frozen=True, slots=True)
class Comparing(Check):
    field: Field
    test: Test

    def judge(self, scope: Scope, budget: Budget, /) -> Judgement:
        value = self.field.read(scope)
        if isinstance(value, Absent):
            return Judgement(None, value.problem)
        try:
            if self.test(value, scope, budget):
                return HOLDS
            truth: bool | None = False
            why = ""
        except Unfit as unfit:
            truth, why = None, f" ({unfit})"
        except ExpressionError as error:
            return Judgement(None, f"{self.statement}: {error.problem}")
        seen = observed(self.field.root, "it", value)
        return Judgement(truth, f"{self.statement}: {seen}{why}")


@dataclass(frozen=True, slots=True)
class Expressed(Check):
    expression: Expression

    def judge(self, scope: Scope, budget: Budget, /) -> Judgement:
        try:
            value = self.expression.evaluate(scope, budget)
            if isinstance(value, Absent):
                place = "" if value.names else f"{self.statement}: "
                return Judgement(None, f"{place}{value.problem}")
            return HOLDS if value else _fails(self._reason(scope, budget))
        except ExpressionError as error:
            return Judgement(None, f"{self.statement}: {error.message}")

    def _reason(self, scope: Scope, budget: Budget) -> str:
        """The first part that does not hold, with what was found at its names."""
        for clause in self.expression.clauses:
            value = clause.evaluate(scope, budget)
            if isinstance(value, Absent) or not value:
                return f"{shortened(clause.text)}: {_seen(clause, value, scope, budget)}"
        return self.statement


@dataclass(frozen=True, slots=True)
class AllOf(Check):
    checks: tuple[Check, ...]

    def judge(self, scope: Scope, budget: Budget, /) -> Judgement:
        first = HOLDS
        for check in self.checks:
            judgement = check.judge(scope, budget)
            if judgement.truth:
                continue
            if first is HOLDS:
                first = judgement
            if judgement.truth is False:
                return _fails(first.reason)
        return first


@dataclass(frozen=True, slots=True)
class AnyOf(Check):
    checks: tuple[Check, ...]

    def judge(self, scope: Scope, budget: Budget, /) -> Judgement:
        truth: bool | None = False
        reasons = []
        for check in self.checks:
            judgement = check.judge(scope, budget)
            if judgement.truth:
                return HOLDS
            if judgement.truth is None:
                truth = None
            reasons.append(judgement.reason)
        return Judgement(truth, shortened(f"none of these holds: {'; '.join(reasons)}"))


@dataclass(frozen=True, slots=True)
class Negated(Check):
    check: Check

    def judge(self, scope: Scope, budget: Budget, /) -> Judgement:
        inner = self.check.judge(scope, budget)
        if inner.truth:
            return _fails(f"{self.check.statement}: it holds, and must not")
        return HOLDS if inner.truth is False else inner


def _seen(clause: Clause, value: object, scope: Scope, budget: Budget) -> str:
    paths = {path.written: path for path in clause.paths}
    seen = [
        observed(path.root, name, closures.path(path)(scope, budget))
        for name, path in list(paths.items())[:_MOST_VALUES]
    ]
    return ", ".join(seen) or observed("", "it", value)


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
