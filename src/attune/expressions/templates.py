"""`{{ … }}` in the strings of a document.

A string that is one template takes the value itself, with its type; inside a longer string values become text.
Only values are rendered, never the keys of an object.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from attune.expressions.budget import DEPTH, Budget
from attune.expressions.errors import ExpressionError, Unfit
from attune.expressions.functions import BUILTIN, Functions
from attune.expressions.language import Expression, compile_expression
from attune.expressions.tokens import STRING
from attune.expressions.values import Absent, Scope, measure, text

_OPENING = "{{"
# A quote that opens no string ends the search at once: looking on from each would take quadratic time.
_ENDING = re.compile(rf"""{STRING}|(?P<quote>['"])|(?P<closing>\}}\}})""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rendered:
    """`missing` lists the names that had no value, once each; where they stood there is null or nothing.

    What came from the scope is in `value` by reference: neither of the two may be changed afterwards.
    """

    value: object
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    expressions: tuple[Expression, ...]
    _render: "_Render"

    @property
    def names(self) -> frozenset[str]:
        """The names that rendering may read: event, parameters, keystore, …"""
        return frozenset().union(*(expression.names for expression in self.expressions))

    @property
    def paths(self) -> frozenset[tuple[str | int, ...]]:
        """The same with the constant keys below them, to load no more of a key store than is used."""
        return frozenset().union(*(expression.paths for expression in self.expressions))

    def render(
        self, scope: Scope, *, strict: bool = False, budget: Budget | None = None
    ) -> Rendered:
        """Raises ExpressionError for an operation without a result, and, if strict, for a missing name."""
        rendering = _Rendering(scope, budget or Budget(), {})
        value = self._render(rendering)
        missing = tuple(rendering.missing)
        if strict and missing:
            raise ExpressionError(f"missing: {', '.join(missing)}")
        return Rendered(value, missing)


@dataclass(frozen=True, slots=True)
class _Rendering:
    scope: Scope
    budget: Budget
    missing: dict[str, None]


_Render = Callable[[_Rendering], object]


def holds_template(value: object) -> bool:
    """Whether a string is rendered at all; the check of a schema lets it pass for any type."""
    return isinstance(value, str) and _OPENING in value


def compile_template(value: object, field: str = "", functions: Functions = BUILTIN) -> Template:
    """`value` is a document of any shape; `field` is its place in a larger one, for the errors."""
    compiler = _Compiler(functions)
    render = compiler.document(value, field, 0)
    return Template(tuple(compiler.expressions), render)


class _Compiler:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self.expressions: list[Expression] = []

    def document(self, value: object, field: str, depth: int) -> _Render:
        if depth > DEPTH:
            raise ExpressionError(f"it is nested more than {DEPTH} deep", field=field[:80])
        if isinstance(value, dict):
            members = {
                key: self.document(item, f"{field}.{key}" if field else str(key), depth + 1)
                for key, item in value.items()
            }
            return lambda it: {key: render(it) for key, render in members.items()}
        if isinstance(value, list):
            items = [
                self.document(item, f"{field}[{place}]", depth + 1)
                for place, item in enumerate(value)
            ]
            return lambda it: [render(it) for render in items]
        return self._string(value, field) if isinstance(value, str) else lambda _: value

    def _string(self, source: str, field: str) -> _Render:
        pieces = list(self._pieces(source, field))
        if len(pieces) == 1:
            (only,) = pieces
            return only.value if isinstance(only, _Slot) else lambda _: only
        return lambda it: "".join(
            [piece if isinstance(piece, str) else piece.text(it) for piece in pieces]
        )

    def _pieces(self, source: str, field: str) -> "Iterator[str | _Slot]":
        """The text between the templates, and the templates."""
        position = 0
        while (opening := source.find(_OPENING, position)) >= 0:
            if opening > position:
                yield source[position:opening]
            start = opening + len(_OPENING)
            inner, position = _inside(source, start, field)
            yield self._slot(inner, start, field)
        if position < len(source) or not source:
            yield source[position:]

    def _slot(self, inner: str, start: int, field: str) -> "_Slot":
        try:
            expression = compile_expression(inner, self._functions)
        except ExpressionError as error:
            raise error.within(field, start) from None
        self.expressions.append(expression)
        return _Slot(expression, field, start)


@dataclass(frozen=True, slots=True)
class _Slot:
    """One `{{ … }}`, and where its expression starts in the string."""

    expression: Expression
    field: str
    start: int

    def value(self, it: _Rendering) -> object:
        try:
            found = self._evaluate(it)
            # A value may be named many times over; each time it is rendered it is paid for.
            measure(found, it.budget)
        except ExpressionError as error:
            raise error.within(self.field, self.start) from None
        return found

    def text(self, it: _Rendering) -> str:
        try:
            written = text(self._evaluate(it), it.budget)
            it.budget.spend(len(written))
        except ExpressionError as error:
            raise error.within(self.field, self.start) from None
        except Unfit as unfit:
            raise ExpressionError(str(unfit), field=self.field, column=self.start + 1) from None
        return written

    def _evaluate(self, it: _Rendering) -> object:
        """Null for a missing name, which is noted."""
        found = self.expression.evaluate(it.scope, it.budget)
        if not isinstance(found, Absent):
            return found
        if not found.names:
            raise ExpressionError(found.problem, column=found.column)
        it.missing.update(dict.fromkeys(found.names))
        return None


def _inside(source: str, start: int, field: str) -> tuple[str, int]:
    """The expression that begins at `start`, and where the text after its }} begins."""
    for match in _ENDING.finditer(source, start):
        if match["quote"]:
            raise ExpressionError(
                "the string is not closed", field=field or None, column=match.start() + 1
            )
        if match["closing"]:
            return source[start : match.start()], match.end()
    problem = "{{ is not closed; for the two characters themselves write {{ '{{' }}"
    raise ExpressionError(problem, field=field or None, column=start - 1)
