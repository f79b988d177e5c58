"""The tree of a condition: each node judges a scope, and says why.

A judgement is true, false or open; it is open over a field that is missing or of another type, and what is
open matches neither as it is nor negated.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from msgspec import UNSET

from attune.expressions import closures
from attune.expressions.budget import Budget
from attune.expressions.criteria import Test
from attune.expressions.errors import ExpressionError, Unfit
from attune.expressions.fields import Field, observed
from attune.expressions.language import Clause, Expression
from attune.expressions.requirements import Place, Refusal, Requirement, is_plain, stand_in
from attune.expressions.syntax import Path
from attune.expressions.values import Absent, Scope

_LONGEST_REASON = 500
_MOST_VALUES = 4
_KEPT_PLACES = 1024
_UNSPENT = Budget()  # reading a path costs nothing


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

    def requirements(self) -> tuple[Requirement, ...]:
        """Equalities without any one of which it is not true. Only the first may have a refusal of its own."""
        return ()


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
    equal_to: object = UNSET
    """The constant, where the test is a plain equality."""

    def requirements(self) -> tuple[Requirement, ...]:
        if self.equal_to is UNSET or not is_plain(self.equal_to):
            return ()
        refusal = Refusal(self.statement, tells_absence=True)
        return (Requirement(_place_of_field(self.field), stand_in(self.equal_to), refusal),)

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

    def requirements(self) -> tuple[Requirement, ...]:
        """With several clauses a missing value is told with the clause, or without, as the others come out."""
        alone = len(self.expression.clauses) == 1
        found = []
        for number, clause in enumerate(self.expression.clauses):
            if clause.equality is not None:
                path, constant = clause.equality
                words = Refusal(shortened(clause.text), tells_absence=alone)
                place = _place_of_path(path.root, path.keys)
                refusal = words if number == 0 else None
                found.append(Requirement(place, stand_in(constant), refusal))
        return tuple(found)

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

    def requirements(self) -> tuple[Requirement, ...]:
        """The first check's reason goes before that of any other, whether it is false or open."""
        first, *others = self.checks
        rest = [one for check in others for one in check.requirements()]
        return (*first.requirements(), *(one._replace(refusal=None) for one in rest))

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


@lru_cache(maxsize=_KEPT_PLACES)
def _place_of_field(field: Field) -> Place:
    return Place(field.written, field.root, "it", field.read)


@lru_cache(maxsize=_KEPT_PLACES, typed=True)
def _place_of_path(root: str, keys: tuple[str | int, ...]) -> Place:
    path = Path(root, keys, start=0, end=0)
    read = closures.path(path)
    return Place(path.written, root, path.written, lambda scope: read(scope, _UNSPENT))


def _seen(clause: Clause, value: object, scope: Scope, budget: Budget) -> str:
    paths = {path.written: path for path in clause.paths}
    seen = [
        observed(path.root, name, closures.path(path)(scope, budget))
        for name, path in list(paths.items())[:_MOST_VALUES]
    ]
    return ", ".join(seen) or observed("", "it", value)


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
