"""Whatever is written and whatever the data: only the errors of this package, and never more than the budget."""

import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attune.expressions.budget import Budget
from attune.expressions.conditions import compile_condition
from attune.expressions.criteria import ALIASES, CRITERIA
from attune.expressions.errors import ExpressionError
from attune.expressions.functions import BUILTIN
from attune.expressions.language import compile_expression
from attune.expressions.templates import Rendered, compile_template
from attune.expressions.values import Absent

pytestmark = pytest.mark.timeout(120)

NAMES = ["a", "b", "event"]

json_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
json_values = st.recursive(
    json_scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*NAMES, "c-d"]), inner)
    ),
    max_leaves=12,
)
scopes = st.dictionaries(st.sampled_from(NAMES), json_values)

literals = st.one_of(
    st.integers(0, 2**63 - 1).map(str),
    st.floats(0, 1e300).map(repr),
    st.sampled_from(["true", "false", "null", "''", "'a'", '"b\\n"', "'(a+)+$'", "[]"]),
)
paths = st.builds(
    "{}{}".format,
    st.sampled_from(NAMES),
    st.sampled_from(["", ".a", ".b.event", "[0]", "[-1].a", "['c-d']", "[a]", "[0][1]"]),
)
BINARY = ["or", "and", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "+", "-", "*", "/", "%"]


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    calls = st.builds(
        lambda name, arguments: f"{name}({', '.join(arguments)})",
        st.sampled_from(sorted(BUILTIN)),
        st.lists(inner, min_size=1, max_size=3),
    )
    return st.one_of(
        calls,
        st.builds("({} {} {})".format, inner, st.sampled_from(BINARY), inner),
        st.builds("(not {})".format, inner),
        st.builds("-{}".format, inner),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.builds("({})[{}]".format, inner, inner),
    )


sources = st.recursive(literals | paths, _compound, max_leaves=10)


def compiled(source: str) -> Any:
    """None where the number of arguments, or a literal pattern, is refused."""
    try:
        return compile_expression(source)
    except ExpressionError:
        return None


@given(st.text() | st.text(alphabet="()[]{}.,'\"+-*/%<>=! abnotridx019_\\\n"))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    compiled(text)


@given(st.text(alphabet="{}'\" ab.()+1\\") | st.text())
def test_any_text_is_a_template_or_refused(text: str) -> None:
    with suppress(ExpressionError):
        compile_template(text).render({})


@given(sources, scopes, st.sampled_from([0, 300, 100_000]))
@settings(max_examples=300, deadline=None)
def test_any_expression_over_any_data_gives_json_within_the_budget(
    source: str, scope: dict[str, Any], limit: int
) -> None:
    expression = compiled(source)
    budget = Budget(limit)
    if expression is None:
        return
    try:
        found = expression.evaluate(scope, budget)
    except ExpressionError:
        return
    assert budget.left >= 0
    assert isinstance(found, Absent | bool | int | float | str | list | dict) or found is None
    if isinstance(found, float):
        assert math.isfinite(found)


@given(sources, scopes)
@settings(deadline=None)
def test_any_expression_renders_alike_alone_and_in_a_condition(
    source: str, scope: dict[str, Any]
) -> None:
    if compiled(source) is None:
        return
    verdict = compile_condition({"expression": source}).check(scope)
    try:
        rendered = compile_template(f"{{{{ {source} }}}}").render(scope)
    except ExpressionError:
        assert not verdict.matched
    else:
        assert verdict.matched == (bool(rendered.value) and not rendered.missing)


@given(
    json_values | st.recursive(json_values, lambda inner: st.fixed_dictionaries({"all": inner})),
    scopes,
)
def test_any_document_is_a_condition_or_refused(spec: object, scope: dict[str, Any]) -> None:
    try:
        condition = compile_condition(spec)
    except ExpressionError:
        return
    condition.check(scope)


@given(
    st.sampled_from([*CRITERIA, *ALIASES, "exists", "nexists"]),
    st.sampled_from(["a", "b.a", "event[0].a", "a.0"]),
    json_values,
    scopes,
)
@settings(max_examples=300)
def test_no_operator_fails_on_any_data_and_at_most_one_of_two_opposites_matches(
    operator: str, field: str, value: object, scope: dict[str, Any]
) -> None:
    spec = {"field": field, "operator": operator, "value": value}
    try:
        condition = compile_condition(spec)
    except ExpressionError:
        return
    positive = condition.check(scope).matched
    negative = compile_condition({"not": spec}).check(scope).matched
    assert not (positive and negative)


@given(json_values)
def test_a_document_without_templates_is_rendered_as_it_is(document: object) -> None:
    assert compile_template(document).render({}) == Rendered(document)


@given(json_values)
def test_f37_a_single_template_over_any_value_gives_that_value(value: object) -> None:
    found = compile_template({"x": ["{{ a.b }}"]}).render({"a": {"b": value}})
    assert repr(found) == repr(Rendered({"x": [value]}))


OPEN = object()
"""What the reference gives for a value that is not there."""

Tree = tuple[Any, ...]
leaves: st.SearchStrategy[Tree] = st.one_of(
    st.integers(0, 9).map(lambda n: ("value", n)),
    st.sampled_from([True, False, None, "a", "b", 0.5]).map(lambda v: ("value", v)),
    st.sampled_from(["x", "y", "gone"]).map(lambda n: ("name", n)),
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(st.sampled_from(BINARY[:8] + BINARY[10:]), inner, inner)
        | st.tuples(st.just("not"), inner)
        | st.tuples(st.just("-"), inner)
    ),
    max_leaves=8,
)


def written(tree: Tree) -> str:
    words = {True: "true", False: "false", None: "null"}
    match tree:
        case ("value", value):
            is_word = value is None or isinstance(value, bool)
            return words[value] if is_word else repr(value)
        case ("name", name):
            return str(name)
        case (operator, operand):
            return f"({operator} {written(operand)})"
        case (operator, left, right):
            return f"({written(left)} {operator} {written(right)})"
    raise AssertionError(tree)


def reference(tree: Tree, scope: dict[str, Any]) -> tuple[Any, bool]:
    """The value, or OPEN; and whether it is a comparison that is still open."""
    match tree:
        case ("value", value):
            return value, False
        case ("name", name):
            return scope.get(name, OPEN), False
        case ("not", operand):
            value, _ = reference(operand, scope)
            return (OPEN, True) if value is OPEN else (not value, False)
        case ("-", operand):
            value, undecided = reference(operand, scope)
            return (-value, False) if number(value) else (OPEN, undecided)
        case ("and" | "or" as word, left, right):
            return logic(word, reference(left, scope), reference(right, scope))
        case (operator, left, right):
            (one, first), (two, second) = reference(left, scope), reference(right, scope)
            if operator in ("+", "-", "*", "/", "%"):
                value = OPEN if OPEN in (one, two) else arithmetic(operator, one, two)
                return value, value is OPEN and (first or second)
            value = OPEN if one is OPEN or two is OPEN else comparison(operator, one, two)
            return value, value is OPEN
    raise AssertionError(tree)


def logic(word: str, left: tuple[Any, bool], right: tuple[Any, bool]) -> tuple[Any, bool]:
    deciding = word == "or"
    if left[0] is not OPEN:
        return left if bool(left[0]) is deciding else right
    if right[0] is OPEN:
        return OPEN, left[1] or right[1]
    if bool(right[0]) is deciding:
        return right
    return left if word == "and" or left[1] else right


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if not (number(left) and number(right)) or (operator in "/%" and right == 0):
        return OPEN
    if operator == "/":
        whole = isinstance(left, int) and isinstance(right, int) and left % right == 0
        return left // right if whole else left / right
    return {"+": left + right, "-": left - right, "*": left * right}.get(
        operator, left % right if right else None
    )


def comparison(operator: str, left: Any, right: Any) -> Any:
    alike = (number(left) and number(right)) or type(left) is type(right)
    if operator in ("==", "!="):
        return (alike and left == right) is (operator == "==")
    if not alike or not (number(left) or isinstance(left, str)):
        return OPEN
    order = (left > right) - (left < right)
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]


@given(
    trees,
    st.fixed_dictionaries({"x": st.integers(-3, 3), "y": st.sampled_from(["a", "", None, True])}),
)
@settings(max_examples=1000, deadline=None)
def test_the_language_agrees_with_a_naive_reference(tree: Tree, scope: dict[str, Any]) -> None:
    expected, _ = reference(tree, scope)
    found = compile_expression(written(tree)).evaluate(scope, Budget())
    if expected is OPEN:
        assert isinstance(found, Absent)
    else:
        assert found == expected
        assert type(found) is type(expected)
