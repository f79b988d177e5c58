"""Cuts the source of an expression into tokens, each with its place."""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from attune.expressions.errors import ExpressionError

LONGEST_SOURCE = 16_384

STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""

_TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\r\n]+)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<string>{STRING})
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<symbol>==|!=|<=|>=|[-+*/%<>()\[\],.])
    """,
    re.VERBOSE | re.DOTALL,
)

_WORDS = frozenset({"or", "and", "not", "in"})

_HINTS = {
    "=": "to compare, write ==",
    "!": "write not, or != to compare",
    "&": "write and",
    "|": "there are no filters: call the function, as in upper(x); for a choice write or",
    "{": "there are no literal objects; use merge() and names",
    ":": "there are no slices; use slice(v, from, to)",
}

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


class Kind(Enum):
    NUMBER = auto()
    STRING = auto()
    NAME = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """`text` of a string is what it means, without quotes and escapes; words such as `or` are symbols."""

    kind: Kind
    text: str
    start: int
    end: int


def tokenize(source: str) -> Iterator[Token]:
    """The tokens up to the end of the source, and then one that says so."""
    if len(source) > LONGEST_SOURCE:
        raise ExpressionError(f"an expression has at most {LONGEST_SOURCE} characters")
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise _unexpected(source, position)
        position = match.end()
        if match.lastgroup != "space":
            yield _token(match)
    yield Token(Kind.END, "the end", position, position)


def _token(match: re.Match[str]) -> Token:
    written, span = match[0], match.span()
    if match.lastgroup == "string":
        return Token(Kind.STRING, _ESCAPE.sub(_unescape, written[1:-1]), *span)
    if match.lastgroup == "symbol" or written in _WORDS:
        return Token(Kind.SYMBOL, written, *span)
    return Token(Kind.NUMBER if match.lastgroup == "number" else Kind.NAME, written, *span)


def _unescape(match: re.Match[str]) -> str:
    """An unknown escape stays as it is: '\\d' is what a pattern wants it to be."""
    return _ESCAPED.get(match[1], match[0])


def _unexpected(source: str, position: int) -> ExpressionError:
    character = source[position]
    if character in "'\"":
        problem = "the string is not closed"
    elif character in _HINTS:
        problem = f"{character} cannot stand here: {_HINTS[character]}"
    elif character.isascii():
        problem = f"{character!r} cannot stand here"
    else:
        code = f"U+{ord(character):04X}"
        problem = f"{code} cannot stand outside a string; for such a key write ['…']"
    return ExpressionError(problem, column=position + 1)
