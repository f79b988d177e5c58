"""Every function of the contract, with its edges."""

from typing import Any

import pytest

from attune.expressions.budget import Budget
from attune.expressions.functions import BUILTIN
from attune.expressions.language import compile_expression
from attune.expressions.values import Absent

SCOPE: dict[str, Any] = {
    "m": {"b": 1, "a": [1, 2]},
    "n": {"a": 9, "c": None},
    "words": ["pear", "apple", "fig"],
    "mixed": [1, "1", True, None, 1.0, [1], [1.0], {"k": 1}, {"k": 1}],
    "huge": 10**400,
    "not_finite": float("inf"),
    "not_a_number": float("nan"),
}

CONTRACT = """string number int bool type_of length keys values abs floor ceil round min max sum lower upper trim split join
    replace starts_with ends_with match contains reversed sort unique flat zip range slice index_of count merge chunks"""


def value(source: str) -> object:
    return compile_expression(source).evaluate(SCOPE, Budget())


def test_the_table_is_the_contract() -> None:
    assert set(BUILTIN) == set(CONTRACT.split())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("string('a')", "a"),
        ("string(5)", "5"),
        ("string(5.0)", "5.0"),
        ("string(true)", "true"),
        ("string(null)", ""),
        ("string(m)", '{"b":1,"a":[1,2]}'),
        ("number('5')", 5),
        ("number(' -1.5e2 ')", -150.0),
        ("number('+7')", 7),
        ("number(true)", 1),
        ("number(2.5)", 2.5),
        ("int('5')", 5),
        ("int('5.9')", 5),
        ("int(-5.9)", -5),
        ("int(false)", 0),
        ("bool(0)", False),
        ("bool('')", False),
        ("bool('False')", False),
        ("bool('true')", True),
        ("bool('no')", True),
        ("bool([])", False),
        ("bool(null)", False),
        ("type_of(null)", "null"),
        ("type_of(true)", "boolean"),
        ("type_of(1)", "number"),
        ("type_of(1.5)", "number"),
        ("type_of('')", "string"),
        ("type_of([])", "array"),
        ("type_of(m)", "object"),
        ("length('größe')", 5),
        ("length([])", 0),
        ("length(m)", 2),
        ("keys(m)", ["b", "a"]),
        ("values(m)", [1, [1, 2]]),
        ("abs(-3)", 3),
        ("abs(-0.5)", 0.5),
        ("floor(2.9)", 2),
        ("floor(-2.1)", -3),
        ("floor(3)", 3),
        ("ceil(2.1)", 3),
        ("ceil(-2.9)", -2),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(0.49999999999999994)", 0),
        ("round(2.675, 2)", 2.68),
        ("round(2, 2)", 2),
        ("round(1e300, 2)", 1e300),
        ("round(4503599627370495.5)", 4503599627370496),
        ("min(3, 1, 2)", 1),
        ("min([3, 1.5])", 1.5),
        ("min('b', 'a')", "a"),
        ("max([3, 1, 2])", 3),
        ("max(words)", "pear"),
        ("sum([])", 0),
        ("sum([1, 2.5])", 3.5),
        ("lower('GRÖSSE')", "grösse"),
        ("upper('a')", "A"),
        ("trim('  a b\\n')", "a b"),
        ("split('a,b,,c', ',')", ["a", "b", "", "c"]),
        ("split('', ',')", [""]),
        ("join(words, ', ')", "pear, apple, fig"),
        ("join([1, 'a', null, true, [2]], '-')", "1-a--true-[2]"),
        ("join([], '-')", ""),
        ("replace('banana', 'an', 'AN')", "bANANa"),
        ("replace('a.b', '.', '')", "ab"),
        ("starts_with('host-1', 'host')", True),
        ("starts_with('a', 'b')", False),
        ("ends_with('host-1', '-1')", True),
        ("match('^h.*[0-9]$', 'host-1')", True),
        ("match('ost', 'host')", True),
        ("match('^ost', 'host')", False),
        ("match('(?i)HOST', 'host')", True),
        (r"match('^\d+$', '123')", True),
        ("contains('host', 'os')", True),
        ("contains(words, 'fig')", True),
        ("contains([1], '1')", False),
        ("contains(m, 'a')", True),
        ("reversed([1, 2])", [2, 1]),
        ("reversed('ab')", "ba"),
        ("sort([3, 1.5, 2])", [1.5, 2, 3]),
        ("sort(words)", ["apple", "fig", "pear"]),
        ("sort([])", []),
        ("unique(mixed)", [1, "1", True, None, [1], {"k": 1}]),
        ("flat([1, [2, [3]], []])", [1, 2, [3]]),
        ("zip([1, 2, 3], words, ['x', 'y'])", [[1, "pear", "x"], [2, "apple", "y"]]),
        ("zip([1])", [[1]]),
        ("range(3)", [0, 1, 2]),
        ("range(1, 3)", [1, 2]),
        ("range(5, 0, -2)", [5, 3, 1]),
        ("range(0)", []),
        ("range(3, 1)", []),
        ("slice(words, 1)", ["apple", "fig"]),
        ("slice(words, 0, -1)", ["pear", "apple"]),
        ("slice('hello', 1, 3)", "el"),
        ("slice('hello', 3, 99)", "lo"),
        ("slice('hello', -2, null)", "lo"),
        ("index_of('hello', 'l')", 2),
        ("index_of(words, 'fig')", 2),
        ("index_of(mixed, true)", 2),
        ("index_of(words, 'kiwi')", -1),
        ("count('banana', 'an')", 2),
        ("count(mixed, 1)", 2),
        ("merge(m, n)", {"b": 1, "a": 9, "c": None}),
        ("merge(m)", {"b": 1, "a": [1, 2]}),
        ("chunks([1, 2, 3], 2)", [[1, 2], [3]]),
        ("chunks([], 2)", []),
    ],
)
def test_a_function_gives_its_result(source: str, expected: object) -> None:
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


def test_functions_leave_the_scope_as_it_is() -> None:
    before = repr(SCOPE)
    for source in ("merge(m, n)", "sort(words)", "reversed(words)", "words + words", "flat(mixed)"):
        value(source)
    assert repr(SCOPE) == before


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("number('1,5')", "number(): the string is no number"),
        ("number('0x10')", "number(): the string is no number"),
        ("number('١٢')", "number(): the string is no number"),
        ("number('nan')", "number(): the string is no number"),
        ("number('1e999')", "number(): the result is no finite number"),
        ("number('9223372036854775808')", "number(): the result is too large"),
        ("number(null)", "number(): null is no number"),
        ("int([1])", "int(): an array is no number"),
        ("int(not_finite)", "int(): the number is not finite"),
        ("floor(not_a_number)", "floor(): the number is not finite"),
        ("floor(1e300)", "floor(): the result is too large"),
        ("floor('1')", "floor(): needs a number, not a string"),
        ("round(not_finite)", "round(): the number is not finite"),
        ("round(1.5, 99)", "round(): rounds to 0 to 15 digits"),
        ("round(1.5, 0.5)", "round(): needs a whole number, not a number"),
        ("sum([huge, 1.5])", "sum(): the result is too large"),
        ("sum([1, '2'])", "sum(): needs a number, not a string"),
        ("sum([true])", "sum(): needs a number, not a boolean"),
        ("length(5)", "length(): a number has no length"),
        ("keys([1])", "keys(): needs an object, not an array"),
        ("min([])", "min(): the array is empty"),
        ("max(1, 'a')", "max(): only numbers, or only strings, can be put in order"),
        ("min(5)", "min(): needs an array, not a number"),
        ("sort([1, true])", "sort(): only numbers, or only strings, can be put in order"),
        ("lower(5)", "lower(): needs a string, not a number"),
        ("split('a', '')", "split(): the string to look for is empty"),
        ("replace('a', '', 'b')", "replace(): the string to look for is empty"),
        ("count('a', '')", "count(): the string to look for is empty"),
        ("index_of('a', 1)", "index_of(): needs a string, not a number"),
        ("join('a', ',')", "join(): needs an array, not a string"),
        ("match('a', 5)", "match(): needs a string, not a number"),
        ("match(5, 'a')", "match(): needs a string, not a number"),
        ("match('(' + '', 'a')", "match(): the pattern '(' is not valid: missing ): ("),
        ("contains(5, 5)", "contains(): a number contains nothing"),
        ("reversed(m)", "reversed(): needs a string or an array, not an object"),
        ("range(1, 2, 0)", "range(): the step is zero"),
        ("range(1.0)", "range(): needs a whole number, not a number"),
        ("range(true)", "range(): needs a whole number, not a boolean"),
        ("chunks([1], 0)", "chunks(): a chunk has at least one item"),
        ("merge(m, null)", "merge(): needs an object, not null"),
        ("slice('a', '0')", "slice(): needs a whole number, not a string"),
        ("string(huge) + 1", "+ does not take a string and a number"),
    ],
)
def test_a_function_without_a_result_says_why(source: str, problem: str) -> None:
    found = value(source)
    assert isinstance(found, Absent)
    assert found.problem == problem


def test_f36_a_regex_on_a_number_does_not_raise() -> None:
    assert isinstance(value("match('^5$', 5)"), Absent)
    assert value("match('^5$', string(5))") is True
