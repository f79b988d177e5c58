"""Compiles an expression, once, into closures over its tree: no code is generated, nothing but data is reached."""

import difflib
from dataclasses import dataclass
from functools import lru_cache

from attune.expressions import closures
from attune.expressions.closures import Evaluate
from attune.expressions.errors import ExpressionError
from attune.expressions.functions import BUILTIN, Function, Functions, Scoped
from attune.expressions.operators import ARITHMETIC, COMPARISONS
from attune.expressions.parser import parse
from attune.expressions.syntax import (
    Access,
    Arithmetic,
    Call,
    Choice,
    Comparison,
    Conjunction,
    Listing,
    Literal,
    Minus,
    Negation,
    Node,
    Path,
    walk,
)

_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of an expression, for the sentence that tells why it did not hold.

    `equality` is there where it is nothing but `path == constant`.
    """

    text: str
    paths: tuple[Path, ...]
    evaluate: Evaluate
    equality: tuple[Path, object] | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """`clauses` are the parts that must all hold: the operands of an outermost `and`, else the whole."""

    source: str
    clauses: tuple[Clause, ...]
    evaluate: Evaluate

    @property
    def paths(self) -> frozenset[tuple[str | int, ...]]:
        """Every name that it may read, with the constant keys below it."""
        return frozenset(
            (path.root, *path.keys) for clause in self.clauses for path in clause.paths
        )

    @property
    def names(self) -> frozenset[str]:
        return frozenset(path.root for clause in self.clauses for path in clause.paths)


@lru_cache(maxsize=_KEPT)
def compile_expression(source: str, functions: Functions = BUILTIN) -> Expression:
    """Raises ExpressionError, with the column, for what is not in the language."""
    tree = parse(source)
    compiler = _Compiler(source, functions)
    parts = tree.operands if isinstance(tree, Conjunction) else (tree,)
    compiled = [compiler.compile(part) for part in parts]
    clauses = tuple(
        Clause(source[part.start : part.end], _paths(part), evaluate, _equality(part))
        for part, evaluate in zip(parts, compiled, strict=True)
    )
    return Expression(
        source, clauses, closures.all_of(compiled) if len(compiled) > 1 else compiled[0]
    )


class _Compiler:
    def __init__(self, source: str, functions: Functions) -> None:
        self._source = source
        self._functions = functions

    def compile(self, node: Node) -> Evaluate:
        match node:
            case Literal(value=value):
                return lambda _scope, _budget: value
            case Path():
                return closures.path(node)
            case Access():
                return self._access(node)
            case Call():
                return self._call(node)
            case Listing(items=items):
                return closures.listing([self.compile(item) for item in items])
            case Comparison(operator=symbol, left=left, right=right):
                compiled = self.compile(left), self.compile(right)
                return closures.comparison(COMPARISONS[symbol], *compiled, node.start + 1)
            case Arithmetic(first=first, steps=steps):
                rest = [(ARITHMETIC[symbol], self.compile(step)) for symbol, step in steps]
                return closures.arithmetic(self.compile(first), rest, node.start + 1)
        return self._logic(node)

    def _logic(self, node: Node) -> Evaluate:
        match node:
            case Choice(operands=operands):
                return closures.any_of([self.compile(operand) for operand in operands])
            case Conjunction(operands=operands):
                return closures.all_of([self.compile(operand) for operand in operands])
            case Negation(operand=operand):
                return closures.negation(self.compile(operand))
            case Minus(operand=operand):
                return closures.minus(self.compile(operand), node.start + 1)
        raise TypeError(node)

    def _access(self, node: Access) -> Evaluate:
        keys = [self.compile(key) for key in node.keys]
        return closures.access(
            self.compile(node.base), keys, self._source[node.start : node.end], node.start + 1
        )

    def _call(self, node: Call) -> Evaluate:
        column = node.start + 1
        function = self._functions.get(node.name)
        if function is None:
            raise _unknown_function(node.name, self._functions, column)
        least, most = (0, 0) if isinstance(function, Scoped) else (function.least, function.most)
        if not least <= len(node.arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            noun = "argument" if most == 1 else "arguments"
            problem = f"{node.name}() takes {wanted} {noun}, not {len(node.arguments)}"
            raise ExpressionError(problem, column=column)
        if isinstance(function, Scoped):
            answer = function.call
            return lambda scope, _budget: answer(scope)
        _check_literal(function, node)
        arguments = [self.compile(argument) for argument in node.arguments]
        return closures.call(function.call, arguments, node.name, column)


def _check_literal(function: Function, node: Call) -> None:
    first = node.arguments[0] if node.arguments else None
    if function.check is not None and isinstance(first, Literal):
        try:
            function.check(first.value)
        except ExpressionError as error:
            raise error.placed(first.start + 1) from None


def _unknown_function(name: str, functions: Functions, column: int) -> ExpressionError:
    near = difflib.get_close_matches(name[:40], functions, n=1)
    hint = f"; did you mean {near[0]}()?" if near else ""
    return ExpressionError(f"there is no function {name}(){hint}"[:200], column=column)


def _paths(node: Node) -> tuple[Path, ...]:
    return tuple(part for part in walk(node) if isinstance(part, Path))


def _equality(node: Node) -> tuple[Path, object] | None:
    match node:
        case Comparison(operator="==", left=Path() as path, right=Literal(value=constant)):
            return path, constant
        case Comparison(operator="==", left=Literal(value=constant), right=Path() as path):
            return path, constant
    return None
