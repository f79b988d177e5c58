"""Reads an expression into its tree, by precedence climbing.

From loose to tight: or · and · not · comparisons and in · + - · * / % · unary minus · calls and keys.
"""

import math

from attune.expressions.budget import DEPTH
from attune.expressions.errors import ExpressionError
from attune.expressions.syntax import (
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
    keyed,
)
from attune.expressions.tokens import Kind, Token, tokenize
from attune.expressions.values import LARGEST_INTEGER

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _MINUS = range(1, 8)

_POWERS = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "not"), _COMPARE),
    **dict.fromkeys("+-", _ADD),
    **dict.fromkeys("*/%", _MULTIPLY),
}

_CONSTANTS = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}


def parse(source: str) -> Node:
    """The tree of the whole source; an ExpressionError tells the column of what does not belong."""
    parser = _Parser(source)
    node = parser.expression(_OR)
    if parser.token.kind is not Kind.END:
        raise parser.unexpected("an operator")
    return node


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = tokenize(source)
        self.token = next(self._tokens)
        self._last_end = 0
        self._depth = 0

    def expression(self, power: int) -> Node:
        """Everything from here that binds at least as tight as `power`."""
        self._depth += 1
        if self._depth > DEPTH:
            raise ExpressionError(
                f"it is nested more than {DEPTH} deep", column=self.token.start + 1
            )
        node = self._operand(power)
        while (found := self._infix()) >= power:
            node = self._binary(node, found)
        self._depth -= 1
        return node

    def unexpected(self, wanted: str) -> ExpressionError:
        found = self.token.text if self.token.kind is not Kind.STRING else "a string"
        return ExpressionError(
            f"expected {wanted}, found {found}"[:200], column=self.token.start + 1
        )

    def _advance(self) -> Token:
        token = self.token
        self._last_end = token.end
        self.token = next(self._tokens, token)
        return token

    def _at(self, *symbols: str) -> bool:
        return self.token.kind is Kind.SYMBOL and self.token.text in symbols

    def _expect(self, symbol: str) -> None:
        if not self._at(symbol):
            raise self.unexpected(f"'{symbol}'")
        self._advance()

    def _infix(self) -> int:
        return _POWERS.get(self.token.text, 0) if self.token.kind is Kind.SYMBOL else 0

    def _binary(self, left: Node, power: int) -> Node:
        if power == _COMPARE:
            return self._comparison(left)
        if power in (_OR, _AND):
            operands = [left]
            while self._infix() == power:
                self._advance()
                operands.append(self.expression(power + 1))
            kind = Choice if power == _OR else Conjunction
            return kind(tuple(operands), start=left.start, end=self._last_end)
        steps = []
        while self._infix() == power:
            operator = self._advance().text
            steps.append((operator, self.expression(power + 1)))
        return Arithmetic(left, tuple(steps), start=left.start, end=self._last_end)

    def _comparison(self, left: Node) -> Node:
        operator = self._advance().text
        if operator == "not":
            self._expect("in")
            operator = "not in"
        right = self.expression(_COMPARE + 1)
        if self._infix() == _COMPARE:
            raise ExpressionError(
                "comparisons do not chain: join them with and", column=self.token.start + 1
            )
        return Comparison(operator, left, right, start=left.start, end=self._last_end)

    def _operand(self, power: int) -> Node:
        start = self.token.start
        if self._at("not"):
            if power > _NOT:
                raise ExpressionError("put 'not …' in parentheses here", column=start + 1)
            self._advance()
            return Negation(self.expression(_NOT), start=start, end=self._last_end)
        if self._at("-"):
            self._advance()
            return Minus(self.expression(_MINUS), start=start, end=self._last_end)
        node = self._primary()
        keys = []
        while self._at(".", "["):
            keys.append(self._key())
        return keyed(node, keys, self._last_end) if keys else node

    def _primary(self) -> Node:
        token = self.token
        if self._at("("):
            self._advance()
            node = self.expression(_OR)
            self._expect(")")
            return node
        if self._at("["):
            return Listing(self._items("]"), start=token.start, end=self._last_end)
        if token.kind is Kind.NAME:
            return self._name()
        if token.kind not in (Kind.STRING, Kind.NUMBER):
            raise self.unexpected("a value")
        self._advance()
        value = token.text if token.kind is Kind.STRING else _number(token)
        return Literal(value, start=token.start, end=token.end)

    def _name(self) -> Node:
        token = self._advance()
        if self._at("("):
            arguments = self._items(")")
            return Call(token.text, arguments, start=token.start, end=self._last_end)
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], start=token.start, end=token.end)
        return Path(token.text, (), start=token.start, end=token.end)

    def _items(self, closing: str) -> tuple[Node, ...]:
        self._advance()
        items: list[Node] = []
        while not self._at(closing):
            items.append(self.expression(_OR))
            if self._at(","):
                self._advance()
            elif not self._at(closing):
                raise self.unexpected(f"',' or '{closing}'")
        self._advance()
        return tuple(items)

    def _key(self) -> Node:
        if self._advance().text == ".":
            return self._attribute()
        key = self.expression(_OR)
        self._expect("]")
        return key

    def _attribute(self) -> Literal:
        """After a dot every word is a key, `in` and `not` included."""
        token = self.token
        if not token.text.isidentifier() or token.kind not in (Kind.NAME, Kind.SYMBOL):
            raise self.unexpected(
                "a key; for one that is no plain word write ['…'], for a place [0]"
            )
        self._advance()
        if self._at("("):
            raise ExpressionError(
                f"values have no methods: write {token.text}(…)", column=token.start + 1
            )
        return Literal(token.text, start=token.start, end=token.end)


def _number(token: Token) -> int | float:
    digits = token.text.lstrip("0") or "0"
    whole = token.text.isdigit()
    value = int(digits) if whole and len(digits) < 20 else float(token.text)
    if (whole and value > LARGEST_INTEGER) or value == math.inf:
        raise ExpressionError("the number is too large", column=token.start + 1)
    return value
