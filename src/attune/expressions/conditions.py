"""A rule's conditions: refused, with the place, when they are compiled; afterwards they only match or do not."""

import difflib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec import UNSET

from attune.expressions.budget import DEPTH, Budget
from attune.expressions.criteria import ALIASES, CRITERIA
from attune.expressions.errors import ExpressionError
from attune.expressions.fields import parse_field
from attune.expressions.functions import BUILTIN, Functions
from attune.expressions.judgements import (
    AllOf,
    Always,
    AnyOf,
    Check,
    Comparing,
    Expressed,
    Negated,
    Presence,
    shortened,
)
from attune.expressions.language import compile_expression
from attune.expressions.requirements import Requirement
from attune.expressions.values import Scope, measure, shown

_PRESENCE = {"exists": True, "nexists": False}
_OPERATORS = (*CRITERIA, *_PRESENCE, *ALIASES)
_FORMS = ("all", "any", "not", "expression")
_PARTS = ("field", "operator", "value")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` tells what held, or why it did not; it quotes values of the scope, shortened, but no secrets."""

    matched: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Condition:
    paths: frozenset[tuple[str | int, ...]]
    """Every name that checking may read, with the constant keys below it."""
    requirements: tuple[Requirement, ...]
    """Equalities without any one of which it does not match; the first one's refusal, if any, is the reason."""
    _check: Check

    @property
    def names(self) -> frozenset[str]:
        return frozenset(str(root) for root, *_ in self.paths)

    def check(self, scope: Scope, budget: Budget | None = None) -> Verdict:
        """Never raises: what cannot be decided, or only at too high a cost, does not match."""
        judgement = self._check.judge(scope, budget or Budget())
        if judgement.truth:
            return Verdict(matched=True, reason=self._check.statement)
        return Verdict(matched=False, reason=shortened(judgement.reason))


def compile_condition(
    spec: object, field: str = "conditions", functions: Functions = BUILTIN
) -> Condition:
    """`field` is where the conditions stand in their document, for the errors."""
    compiler = _Compiler(functions)
    check = compiler.compile(spec, field, 0)
    return Condition(frozenset(compiler.paths), check.requirements(), check)


class _Compiler:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self.paths: set[tuple[str | int, ...]] = set()

    def compile(self, spec: object, field: str, depth: int) -> Check:
        if depth > DEPTH:
            raise ExpressionError(f"it is nested more than {DEPTH} deep", field=field[:80])
        if isinstance(spec, list):
            return self._all(spec, field, depth)
        if not spec and (spec is None or isinstance(spec, dict)):
            return Always("there are no conditions")
        if not isinstance(spec, dict):
            raise ExpressionError("conditions are an object or a list", field=field)
        if spec.keys() & set(_PARTS):
            return self._criterion(spec, field)
        return self._form(spec, field, depth)

    def _form(self, spec: dict[str, object], field: str, depth: int) -> Check:
        form, *others = spec
        if form not in _FORMS:
            raise _unknown("key", form, (*_FORMS, *_PARTS), field)
        if others:
            raise ExpressionError(f"{form} stands alone, without {others[0]}"[:200], field=field)
        given, place = spec[form], f"{field}.{form}"
        if form == "expression":
            return self._expression(given, place)
        if form == "not":
            check = self.compile(given, place, depth + 1)
            return Negated(shortened(f"not ({check.statement})"), check)
        if not isinstance(given, list):
            raise ExpressionError("it must be a list of conditions", field=place)
        return (self._all if form == "all" else self._any)(given, place, depth)

    def _all(self, specs: list[object], field: str, depth: int) -> Check:
        if not specs:
            return Always("there are no conditions")
        checks = self._each(specs, field, depth)
        return AllOf(shortened(" and ".join(check.statement for check in checks)), checks)

    def _any(self, specs: list[object], field: str, depth: int) -> Check:
        if not specs:
            raise ExpressionError("it must hold at least one condition", field=field)
        checks = self._each(specs, field, depth)
        return AnyOf(shortened(" or ".join(check.statement for check in checks)), checks)

    def _each(self, specs: list[object], field: str, depth: int) -> tuple[Check, ...]:
        return tuple(
            self.compile(spec, f"{field}[{place}]", depth + 1) for place, spec in enumerate(specs)
        )

    def _expression(self, source: object, field: str) -> Check:
        if not isinstance(source, str):
            raise ExpressionError("it must be a string", field=field)
        inner, start = _bare(source)
        try:
            expression = compile_expression(inner, self._functions)
        except ExpressionError as error:
            raise error.within(field, start) from None
        self.paths |= expression.paths
        return Expressed(shortened(inner.strip()), expression)

    def _criterion(self, spec: dict[str, object], field: str) -> Check:
        for key in spec:
            if key not in _PARTS:
                raise _unknown("key", key, _PARTS, field)
        with _placing(f"{field}.field"):
            path = parse_field(spec.get("field"))
        self.paths.add((path.root, *path.keys))
        operator = _operator(spec.get("operator"), f"{field}.operator")
        if operator in _PRESENCE:
            if spec.get("value", True) not in (True, None):
                raise ExpressionError(f"{operator} takes no value", field=f"{field}.value")
            return Presence(f"{path.written} {operator}", path, _PRESENCE[operator])
        with _placing(f"{field}.value"):
            if "value" not in spec:
                raise ExpressionError(f"{operator} needs a value")
            measure(spec["value"], Budget())
            test = CRITERIA[operator](spec["value"])
        statement = shortened(f"{path.written} {operator} {shown(spec['value'])}")
        equal_to = spec["value"] if operator == "equals" else UNSET
        return Comparing(statement, path, test, equal_to)


@contextmanager
def _placing(field: str) -> Iterator[None]:
    try:
        yield
    except ExpressionError as error:
        raise error.within(field) from None


def _operator(word: object, field: str) -> str:
    if not isinstance(word, str):
        raise ExpressionError("it must be one of the operators", field=field)
    name = ALIASES.get(word, word)
    if name not in CRITERIA and name not in _PRESENCE:
        raise _unknown("operator", word, _OPERATORS, field)
    return name


def _bare(source: str) -> tuple[str, int]:
    """The expression without the {{ }} around it, and where it starts."""
    stripped = source.strip()
    if not (stripped.startswith("{{") and stripped.endswith("}}")):
        return source, 0
    start = source.index("{{") + 2
    return source[start : source.rindex("}}")], start


def _unknown(what: str, word: object, known: Collection[str], field: str) -> ExpressionError:
    near = difflib.get_close_matches(str(word)[:80], known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ExpressionError(f"unknown {what} {shown(word)}{hint}", field=field)
