"""The language of expressions: what it means, what it refuses, and what a missing value does to it."""

import pickle
from typing import Any

import pytest

from attune.expressions.budget import Budget
from attune.expressions.errors import ExpressionError, TooCostly
from attune.expressions.functions import BUILTIN
from attune.expressions.language import compile_expression
from attune.expressions.values import Absent

SCOPE: dict[str, Any] = {
    "event": {
        "id": 7,
        "payload": {
            "severity": "low",
            "count": 2,
            "ratio": 0.5,
            "zero": 0,
            "empty": "",
            "no": False,
            "nothing": None,
            "my-key": "dashed",
            "in": "a word of the language",
            "hosts": [{"name": "a"}, {"name": "b"}],
            "by_name": {"a": {"port": 80}},
        },
    },
    "item": "a",
}


def value(source: str, scope: dict[str, Any] = SCOPE) -> object:
    return compile_expression(source).evaluate(scope, Budget())


def absent(source: str) -> Absent:
    found = value(source)
    assert isinstance(found, Absent), found
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'x'", "x"),
        ('"x"', "x"),
        (r"'it\'s'", "it's"),
        (r'"say \"hi\""', 'say "hi"'),
        (r"'a\tb\nc\\d'", "a\tb\nc\\d"),
        (r"'\d+\.\w'", r"\d+\.\w"),
        ("'größe }} {{ %s {0}'", "größe }} {{ %s {0}"),
        ("12", 12),
        ("007", 7),
        ("1.5", 1.5),
        ("2e3", 2000.0),
        ("9223372036854775807", 2**63 - 1),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("[]", []),
        ("['a', 1, [true, null],]", ["a", 1, [True, None]]),
        (" ( ( 1 ) ) ", 1),
    ],
)
def test_literals_mean_what_they_say(source: str, expected: object) -> None:
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("event.id", 7),
        ("event['payload'].count", 2),
        ("event.payload['my-key']", "dashed"),
        ("event.payload.in", "a word of the language"),
        ("event.payload.hosts[0].name", "a"),
        ("event.payload.hosts[-1]['name']", "b"),
        ("event.payload.hosts[event.payload.count - 1].name", "b"),
        ("event.payload.by_name[item].port", 80),
        ("event.payload.severity[0]", "l"),
        ("(event.payload).count", 2),
        ("['a', 'b'][1]", "b"),
    ],
)
def test_names_reach_into_objects_and_arrays(source: str, expected: object) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("2 * 3 % 4", 2),
        ("-2 * -3", 6),
        ("- -2", 2),
        ("7 / 2", 3.5),
        ("6 / 2", 3),
        ("6.0 / 2", 3.0),
        ("7 % 3", 1),
        ("-7 % 3", 2),
        ("0.5 + 1", 1.5),
        ("'a' + 'b'", "ab"),
        ("[1] + [2, 3]", [1, 2, 3]),
        ("1 + 1 == 2 and not 2 < 1 or false", True),
        ("not 1 == 2", True),
        ("not true or true", True),
        ("false and true or true", True),
        ("true or false and false", True),
        ("1 + 2 in [3]", True),
        ("not 1 in [2]", True),
    ],
)
def test_operators_bind_as_usual(source: str, expected: object) -> None:
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'3' == 3", False),
        ("'3' != 3", True),
        ("3 == 3.0", True),
        ("true == 1", False),
        ("false == 0", False),
        ("null == false", False),
        ("null == null", True),
        ("'' == null", False),
        ("[1, true] == [1, 1]", False),
        ("[1, [2.0]] == [1.0, [2]]", True),
        ("event.payload.hosts == event.payload.hosts + []", True),
        ("event.payload.by_name == event.payload.hosts[0]", False),
        ("1 < 2", True),
        ("2 <= 2.0", True),
        ("'a' < 'b'", True),
        ("'b' >= 'b'", True),
        ("'10' > '9'", False),
        ("'a' in ['a', 'b']", True),
        ("1 in [true]", False),
        ("1 in ['1']", False),
        ("[1] in [[1.0]]", True),
        ("'ow' in 'low'", True),
        ("'name' in event.payload.hosts[0]", True),
        ("1 in event.payload.hosts[0]", False),
        ("'c' not in ['a', 'b']", True),
    ],
)
def test_comparisons_never_coerce(source: str, expected: bool) -> None:
    assert value(source) is expected


@pytest.mark.parametrize(
    "name", ["zero", "empty", "no", "nothing"], ids=["0", "empty string", "false", "null"]
)
def test_f35_a_value_that_is_not_true_is_still_a_value(name: str) -> None:
    literal = {"zero": "0", "empty": "''", "no": "false", "nothing": "null"}[name]
    assert value(f"event.payload.{name} == {literal}") is True
    assert value(f"event.payload.{name} != {literal}") is False
    assert value(f"not event.payload.{name}") is True


@pytest.mark.parametrize(
    "source",
    [
        "event.payload.gone",
        "event.payload.gone.further",
        "event.payload.nothing.further",
        "event.payload.count.further",
        "event.payload.hosts[2]",
        "event.payload.hosts[-3]",
        "event.payload.hosts['0']",
        "event.payload.hosts[true]",
        "event.payload[0]",
        "elsewhere",
        "event.payload.hosts[event.payload.count]",
        "event.payload.gone == null",
        "event.payload.gone != 'a'",
        "event.payload.gone < 1",
        "event.payload.gone in ['a']",
        "event.payload.gone not in ['a']",
        "'a' not in event.payload.gone",
        "not event.payload.gone",
        "not (event.payload.gone == 1)",
        "not (event.payload.gone == 1 or event.payload.count == 3)",
        "event.payload.gone + 1",
        "-event.payload.gone",
        "length(event.payload.gone)",
        "[event.payload.gone]",
        "event.payload.gone and true",
        "true and event.payload.gone",
        "false or event.payload.gone",
        "event.payload.hosts[event.payload.gone]",
        "event.payload.gone == 1 or event.payload.also_gone == 2",
        "not (event.payload.gone or event.payload.also_gone == 2 or false)",
    ],
)
def test_nothing_over_a_missing_field_holds_nor_its_negation(source: str) -> None:
    assert absent(source).names


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("event.payload.gone or 5", 5),
        ("event.payload.gone or 0", 0),
        ("event.payload.gone or ''", ""),
        ("event.payload.gone or event.payload.also_gone or 'x'", "x"),
        ("(event.payload.gone or 0) < 1", True),
        ("event.payload.gone == 1 or event.payload.count == 2", True),
        ("event.payload.count == 2 or event.payload.gone == 1", True),
        ("event.payload.gone == 1 and event.payload.count == 3", False),
        ("event.payload.count == 3 and event.payload.gone == 1", False),
        ("not (event.payload.gone == 1 and event.payload.count == 3)", True),
        ("int('x') or -1", -1),
        ("event.payload.empty or 'default'", "default"),
        ("event.payload.severity or 'default'", "low"),
        ("event.payload.severity and 3", 3),
        ("event.payload.zero and 3", 0),
    ],
)
def test_or_and_and_decide_what_can_be_decided(source: str, expected: object) -> None:
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


def test_an_absent_value_lists_every_missing_name_as_it_would_be_written() -> None:
    assert absent("event.payload.a + event . payload['b'] + 1").names == (
        "event.payload.a",
        "event.payload.b",
    )
    assert absent("event.payload['my key'][0]").names == ("event.payload['my key'][0]",)
    assert absent("event.payload.hosts[5].name").problem == "event.payload.hosts[5].name is missing"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1.5 % 0.0", "division by zero"),
        ("'a' + 1", "+ does not take a string and a number"),
        ("'a' * 3", "* does not take a string and a number"),
        ("[1] * 3", "* does not take an array and a number"),
        ("true + 1", "+ does not take a boolean and a number"),
        ("'%s' % 'a'", "% does not take a string and a string"),
        ("-'a'", "- needs a number"),
        ("'a' < 1", "< does not take a string and a number"),
        ("null >= 1", ">= does not take null and a number"),
        ("true < false", "< does not take a boolean and a boolean"),
        ("[1] < [2]", "< does not take an array and an array"),
        ("1 in 'abc'", "a string cannot contain a number"),
        ("1 in 5", "a number contains nothing"),
        ("9223372036854775807 + 1", "the result is too large"),
        ("9223372036854775807 * 9223372036854775807", "the result is too large"),
        ("1e308 * 10", "the result is no finite number"),
        ("1e308 * 10 - 1e308 * 10", "the result is no finite number"),
        ("9223372036854775807 / 1e-300", "the result is no finite number"),
    ],
)
def test_an_operation_without_a_result_says_why(source: str, problem: str) -> None:
    found = absent(source)
    assert found.problem == problem
    assert found.names == ()


@pytest.mark.parametrize("source", ["big + 1", "big * 1.5", "big / 3", "-big", "big == big"])
def test_integers_beyond_64_bits_are_data_but_never_a_result(source: str) -> None:
    scope = {"big": 10**400}
    found = value(source, scope)
    assert isinstance(found, Absent) or found in (-(10**400), True)


@pytest.mark.parametrize(
    ("source", "column", "words"),
    [
        ("", 1, "expected a value, found the end"),
        ("1 +", 4, "expected a value, found the end"),
        ("(1", 3, "expected ')', found the end"),
        ("[1 2]", 4, "expected ',' or ']', found 2"),
        ("length(1", 9, "expected ',' or ')', found the end"),
        ("1 2", 3, "expected an operator, found 2"),
        ("a 'b'", 3, "expected an operator, found a string"),
        ("a = 1", 3, "to compare, write =="),
        ("!a", 1, "write not"),
        ("a && b", 3, "write and"),
        ("a || b", 3, "there are no filters"),
        ("a | upper", 3, "there are no filters"),
        ("{'a': 1}", 1, "there are no literal objects"),
        ("a[1:2]", 4, "there are no slices"),
        ("1 < 2 < 3", 7, "comparisons do not chain"),
        ("a == b in c", 8, "comparisons do not chain"),
        ("a == not b", 6, "in parentheses"),
        ("a not b", 7, "expected 'in', found b"),
        ("2 ** 3", 4, "expected a value, found *"),
        ("7 // 2", 4, "expected a value, found /"),
        ("a..b", 3, "expected a key"),
        ("a.0", 3, "for a place [0]"),
        ("a.'b'", 3, "expected a key"),
        ("(a)(b)", 4, "expected an operator, found ("),
        ("a[0](1)", 5, "expected an operator, found ("),
        ("a if b else c", 3, "expected an operator, found if"),
        ("'abc", 1, "the string is not closed"),
        ("1e999", 1, "the number is too large"),
        ("9223372036854775808", 1, "the number is too large"),
        ("lenght(a)", 1, "there is no function lenght(); did you mean length()?"),
        ("length()", 1, "length() takes 1 argument, not 0"),
        ("slice('a', 1, 2, 3)", 1, "slice() takes 2 to 3 arguments, not 4"),
        ("a or match('(', b)", 12, "the pattern '(' is not valid"),
        ("a #b", 3, "'#' cannot stand here"),
    ],
)
def test_what_is_not_in_the_language_is_refused_at_its_place(
    source: str, column: int, words: str
) -> None:
    with pytest.raises(ExpressionError) as refused:
        compile_expression(source)
    assert refused.value.column == column
    assert words in refused.value.problem
    assert refused.value.message == f"column {column}: {refused.value.problem}"
    assert refused.value.fields == {"column": column}
    assert refused.value.code == "invalid_expression"


def test_the_caller_adds_functions_that_read_the_scope() -> None:
    table = BUILTIN.extended(
        {"result": lambda scope: scope["outcome"], "failed": lambda scope: "outcome" not in scope}
    )
    expression = compile_expression("result().response.approved == true and not failed()", table)
    assert expression.evaluate({"outcome": {"response": {"approved": True}}}, Budget()) is True
    open_still = expression.evaluate({"outcome": {"response": {}}}, Budget())
    assert isinstance(open_still, Absent)
    assert open_still.names == ("result().response.approved",)
    with pytest.raises(ExpressionError, match=r"there is no function result\(\)"):
        compile_expression("result().response.approved")
    with pytest.raises(ExpressionError, match=r"result\(\) takes 0 arguments, not 1"):
        compile_expression("result(1)", table)


def test_an_expression_knows_the_names_that_it_reads() -> None:
    expression = compile_expression(
        "keystore.db.password + parameters[item].x and length(event.payload.a) > 1"
    )
    assert expression.names == {"keystore", "parameters", "item", "event"}
    assert ("keystore", "db", "password") in expression.paths
    assert ("event", "payload", "a") in expression.paths


def test_the_same_source_is_compiled_once() -> None:
    assert compile_expression("1 + 1") is compile_expression("1 + 1")


def test_an_error_survives_the_way_between_processes() -> None:
    for error in (ExpressionError("bad", field="a.b", column=3), TooCostly("much", column=1)):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert type(copy) is type(error)
        assert (copy.message, copy.field, copy.column) == (error.message, error.field, error.column)


def test_an_error_keeps_the_innermost_place_and_moves_with_its_field() -> None:
    error = ExpressionError("bad", column=3)
    assert error.placed(9).column == 3
    assert str(error.within("conditions.expression", 2)) == "conditions.expression, column 5: bad"
    assert str(ExpressionError("bad").within("x")) == "x: bad"
