"""A rule's conditions: every form and operator, and the reason why they did not match."""

from typing import Any

import pytest

from attune.expressions.conditions import Verdict, compile_condition
from attune.expressions.criteria import ALIASES, CRITERIA
from attune.expressions.errors import ExpressionError
from attune.expressions.functions import BUILTIN

PAYLOAD: dict[str, Any] = {
    "text": "Disk Full",
    "number": 5,
    "ratio": 0.5,
    "zero": 0,
    "empty": "",
    "yes": True,
    "no": False,
    "nothing": None,
    "list": ["a", "B", 1],
    "object": {"key": 1},
    "then": "2026-11-15T11:59:00Z",
    "later": "2026-11-15T13:01:00.5+01:00",
    "my-key": "dashed",
    "hosts": [{"name": "db-1"}],
}
SCOPE: dict[str, Any] = {
    "event": {"id": 7, "payload": PAYLOAD},
    "system": {"timestamp": "2026-11-15T12:00:00Z", "rule": "ops.page"},
    "keystore": {"token": "s3cret"},
}


def check(spec: object, scope: dict[str, Any] = SCOPE) -> Verdict:
    return compile_condition(spec).check(scope)


def one(name: str, operator: str, *value: object) -> dict[str, object]:
    given: dict[str, object] = {"field": f"event.payload.{name}", "operator": operator}
    return given | {"value": value[0]} if value else given


HOLDING = [
    ("text", "equals", "Disk Full"),
    ("number", "equals", 5),
    ("number", "equals", 5.0),
    ("nothing", "equals", None),
    ("list", "equals", ["a", "B", 1]),
    ("object", "equals", {"key": 1}),
    ("text", "not_equals", "disk full"),
    ("number", "not_equals", "5"),
    ("text", "iequals", "DISK FULL"),
    ("text", "contains", "k F"),
    ("list", "contains", "a"),
    ("list", "contains", 1),
    ("object", "contains", "key"),
    ("text", "icontains", "K f"),
    ("list", "icontains", "b"),
    ("text", "ncontains", "k f"),
    ("list", "ncontains", "b"),
    ("list", "ncontains", True),
    ("text", "startswith", "Disk"),
    ("text", "istartswith", "dISK"),
    ("text", "endswith", "Full"),
    ("text", "iendswith", "fULL"),
    ("text", "matchregex", "^D.*l$"),
    ("text", "matchregex", "isk"),
    ("text", "imatchregex", "^disk"),
    ("text", "matchwildcard", "D*F?ll"),
    ("text", "matchwildcard", "[A-D]isk*"),
    ("text", "matchwildcard", "[!a-z]*"),
    ("number", "greaterthan", 4),
    ("text", "greaterthan", "Disk"),
    ("number", "greater_or_equal", 5),
    ("number", "lessthan", 5.5),
    ("ratio", "less_or_equal", 0.5),
    ("text", "inside", ["x", "Disk Full"]),
    ("text", "inside", "The Disk Full again"),
    ("nothing", "inside", [None]),
    ("text", "ninside", ["x"]),
    ("yes", "ninside", [1]),
    ("then", "timediff_lt", 61),
    ("then", "timediff_gt", 59.5),
    ("later", "timediff_lt", -60),
    ("then", "lessthan", "2026-11-15T12"),
]

FAILING = [
    ("text", "equals", "disk full"),
    ("number", "equals", "5"),
    ("yes", "equals", 1),
    ("number", "not_equals", 5.0),
    ("text", "iequals", "disk"),
    ("text", "contains", "k f"),
    ("list", "contains", "1"),
    ("object", "contains", 1),
    ("text", "icontains", "x"),
    ("text", "ncontains", "Disk"),
    ("text", "startswith", "disk"),
    ("text", "istartswith", "full"),
    ("text", "endswith", "full"),
    ("text", "iendswith", "disk"),
    ("text", "matchregex", "^isk"),
    ("text", "imatchregex", "^isk"),
    ("text", "matchwildcard", "isk"),
    ("text", "matchwildcard", "Disk"),
    ("number", "greaterthan", 5),
    ("number", "greater_or_equal", 5.1),
    ("number", "lessthan", 5),
    ("number", "less_or_equal", 4),
    ("text", "inside", ["disk full"]),
    ("number", "inside", ["5"]),
    ("text", "ninside", ["Disk Full"]),
    ("then", "timediff_lt", 60),
    ("then", "timediff_gt", 60),
]

OF_ANOTHER_TYPE = [
    ("number", "iequals", "5"),
    ("number", "contains", 5),
    ("text", "contains", 5),
    ("number", "icontains", "5"),
    ("number", "ncontains", "5"),
    ("number", "startswith", "5"),
    ("list", "endswith", "a"),
    ("number", "matchregex", "5"),
    ("nothing", "imatchregex", "null"),
    ("number", "matchwildcard", "*"),
    ("text", "greaterthan", 5),
    ("number", "lessthan", "9"),
    ("yes", "greater_or_equal", 1),
    ("list", "less_or_equal", 1),
    ("number", "inside", "12345"),
    ("number", "ninside", "12345"),
    ("number", "timediff_lt", 5),
    ("text", "timediff_gt", 5),
]


@pytest.mark.parametrize(("name", "operator", "value"), HOLDING)
def test_a_condition_holds(name: str, operator: str, value: object) -> None:
    assert check([one(name, operator, value)]).matched
    assert not check({"not": one(name, operator, value)}).matched


@pytest.mark.parametrize(("name", "operator", "value"), FAILING)
def test_a_condition_fails_and_its_negation_holds(name: str, operator: str, value: object) -> None:
    assert not check([one(name, operator, value)]).matched
    assert check({"not": one(name, operator, value)}).matched


@pytest.mark.parametrize(("name", "operator", "value"), OF_ANOTHER_TYPE)
def test_a_field_of_another_type_matches_neither_way(
    name: str, operator: str, value: object
) -> None:
    verdict = check([one(name, operator, value)])
    assert not verdict.matched
    assert verdict.reason.startswith(f"event.payload.{name} {operator} ")
    assert not check({"not": one(name, operator, value)}).matched


def test_every_operator_is_tried_both_ways() -> None:
    assert {operator for _, operator, _ in HOLDING} == set(CRITERIA)
    assert {operator for _, operator, _ in FAILING} == set(CRITERIA)


@pytest.mark.parametrize("operator", CRITERIA)
def test_no_condition_on_a_missing_field_holds_nor_its_negation(operator: str) -> None:
    value = next(value for _, name, value in HOLDING if name == operator)
    for path in ("gone", "gone.further", "number.further", "nothing.further", "hosts[3]"):
        verdict = check([one(path, operator, value)])
        assert verdict == Verdict(matched=False, reason=f"event.payload.{path} is missing")
        assert not check({"not": one(path, operator, value)}).matched


@pytest.mark.parametrize(("alias", "operator"), ALIASES.items())
def test_an_alias_is_its_operator(alias: str, operator: str) -> None:
    for name, used, value in (*HOLDING, *FAILING):
        if used == operator:
            assert check([one(name, alias, value)]) == check([one(name, operator, value)])


def test_the_aliases_are_those_of_the_contract() -> None:
    assert set(ALIASES) == {"gt", "gte", "lt", "lte", "eq", "neq", "in", "nin", "regex"}


@pytest.mark.parametrize("name", ["zero", "empty", "no", "nothing"])
def test_f35_a_value_that_is_not_true_exists_and_compares(name: str) -> None:
    assert check([one(name, "exists")]).matched
    assert check([one(name, "exists", True)]).matched
    assert not check([one(name, "nexists")]).matched
    assert check([one(name, "equals", PAYLOAD[name])]).matched
    assert check([one(name, "not_equals", "x")]).matched
    assert check([one(name, "inside", [PAYLOAD[name]])]).matched
    assert not check([one(name, "ninside", [PAYLOAD[name]])]).matched


def test_exists_and_nexists_ask_for_the_field_alone() -> None:
    assert check([one("gone", "nexists")]).matched
    assert not check({"not": one("gone", "nexists")}).matched
    assert check({"not": one("gone", "exists")}).matched
    assert check([one("gone", "exists")]).reason == "event.payload.gone is missing"
    assert check([one("zero", "nexists")]).reason == "event.payload.zero is there"


def test_f36_a_regex_on_a_number_does_not_match_and_says_so() -> None:
    verdict = check([one("number", "regex", "^5$")])
    assert verdict == Verdict(
        matched=False,
        reason="event.payload.number matchregex '^5$': it is 5 (needs a string, not a number)",
    )


@pytest.mark.parametrize("spec", [None, {}, [], {"all": []}, [{}], {"not": {"not": {}}}])
def test_without_conditions_everything_matches(spec: object) -> None:
    assert check(spec).matched


YES = one("number", "equals", 5)
NO = one("number", "equals", 6)
OPEN = one("gone", "equals", 5)


@pytest.mark.parametrize(
    ("spec", "matched"),
    [
        (YES, True),
        ([YES, YES], True),
        ([YES, NO], False),
        ({"all": [YES, {"any": [NO, YES]}]}, True),
        ({"all": [YES, {"any": [NO, NO]}]}, False),
        ({"any": [OPEN, YES]}, True),
        ({"any": [OPEN, NO]}, False),
        ({"not": {"any": [OPEN, NO]}}, False),
        ({"not": {"any": [NO, NO]}}, True),
        ({"not": {"all": [OPEN, NO]}}, True),
        ({"not": {"all": [OPEN, YES]}}, False),
        ({"not": [YES, NO]}, True),
        ({"not": {"not": YES}}, True),
        ({"not": {}}, False),
        ({"all": [{"expression": "event.payload.number > 3"}, YES]}, True),
        ([{"any": [NO, {"expression": "event.payload.gone"}]}, YES], False),
    ],
)
def test_forms_nest(spec: object, matched: bool) -> None:
    assert check(spec).matched is matched


@pytest.mark.parametrize(
    ("source", "matched"),
    [
        ("event.payload.text == 'Disk Full' and event.payload.number > 3", True),
        ("{{ event.payload.number > 3 }}", True),
        ("  {{event.payload.number > 3}}\n", True),
        ("event.payload.text in ['a', 'Disk Full']", True),
        ("event.payload.number", True),
        ("event.payload.zero", False),
        ("not event.payload.zero", True),
        ("not event.payload.gone", False),
        ("event.payload.gone != 'a'", False),
        ("event.payload.gone", False),
        ("event.payload.text > 3", False),
        ("not (event.payload.text > 3)", False),
        ("1 / event.payload.zero > 1", False),
        ("'{{' in '{{ }}'", True),
    ],
)
def test_an_expression_matches_if_it_is_true(source: str, matched: bool) -> None:
    assert check({"expression": source}).matched is matched


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (one("text", "equals", "high"), "event.payload.text equals 'high': it is 'Disk Full'"),
        (one("list", "eq", [1]), "event.payload.list equals an array of 1: it is an array of 3"),
        (one("no", "eq", True), "event.payload.no equals true: it is false"),
        (one("nothing", "eq", {}), "event.payload.nothing equals an object of 0: it is null"),
        ([YES, NO, OPEN], "event.payload.number equals 6: it is 5"),
        ([OPEN, NO], "event.payload.gone is missing"),
        (
            {"any": [NO, OPEN]},
            "none of these holds: event.payload.number equals 6: it is 5; event.payload.gone is missing",
        ),
        ({"not": YES}, "event.payload.number equals 5: it holds, and must not"),
        (
            {"expression": "event.payload.number == 5 and event.payload.ratio > 3"},
            "event.payload.ratio > 3: event.payload.ratio is 0.5",
        ),
        (
            {"expression": "event.payload.number == 1 or event.payload.number == 2"},
            "event.payload.number == 1 or event.payload.number == 2: event.payload.number is 5",
        ),
        ({"expression": "event.payload.gone > 1"}, "event.payload.gone is missing"),
        (
            {"expression": "event.payload.text > 1"},
            "event.payload.text > 1: > does not take a string and a number",
        ),
        ({"expression": "1 > 2"}, "1 > 2: it is false"),
        (
            one("then", "timediff_lt", 5),
            "event.payload.then timediff_lt 5: it is '2026-11-15T11:59:00Z'",
        ),
    ],
)
def test_the_reason_names_the_field_what_was_wanted_and_what_was_there(
    spec: object, reason: str
) -> None:
    assert check(spec) == Verdict(matched=False, reason=reason)


def test_a_match_tells_what_held() -> None:
    assert check({"all": [YES, {"any": [NO, one("text", "exists")]}]}).reason == (
        "event.payload.number equals 5 and event.payload.number equals 6 or event.payload.text exists"
    )


def test_a_reason_is_short_whatever_the_data() -> None:
    scope = {"event": {"payload": {"text": "x" * 1_000_000, "list": list(range(100_000))}}}
    assert len(check([one("text", "equals", "y" * 1000)], scope).reason) < 300
    assert len(check([one("list", "equals", [])], scope).reason) < 300
    many = {"any": [one("text", "equals", "y" * n) for n in range(100)]}
    assert len(check(many, scope).reason) <= 501


def test_no_reason_tells_a_secret() -> None:
    for spec in (
        {"field": "keystore.token", "operator": "equals", "value": "guess"},
        {"expression": "keystore.token == 'guess'"},
        {"expression": "keystore['token'] == 'guess' or event.id == 1"},
    ):
        assert "s3cret" not in check(spec).reason


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("event.id", 7),
        ("event.payload.my-key", "dashed"),
        ("event.payload['my-key']", "dashed"),
        ("event['payload'].object.key", 1),
        ('event["payload"].number', 5),
        ("event.payload.hosts[0].name", "db-1"),
        ("event.payload.hosts.0.name", "db-1"),
        ("event.payload.hosts[-1].name", "db-1"),
        ("system.rule", "ops.page"),
    ],
)
def test_a_field_is_a_path_into_the_scope(path: str, value: object) -> None:
    assert check([{"field": path, "operator": "equals", "value": value}]).matched


@pytest.mark.parametrize(
    ("then", "seconds"),
    [
        ("2026-11-15T11:59:50Z", 10),
        ("2026-11-15t11:59:50z", 10),
        ("2026-11-15 11:59:50.000+00:00", 10),
        ("2026-11-15T11:59:50.000000000Z", 10),
        ("2026-11-15T13:29:50+01:30", 10),
        ("2026-11-15T12:00:10Z", -10),
    ],
)
def test_a_time_difference_is_now_minus_then_in_seconds(then: str, seconds: int) -> None:
    scope = {"then": then, "system": {"timestamp": "2026-11-15T12:00:00Z"}}
    spec = {"field": "then", "operator": "timediff_lt"}
    assert check(spec | {"value": seconds + 0.5}, scope).matched
    assert not check(spec | {"value": seconds}, scope).matched


@pytest.mark.parametrize(
    "then",
    ["2026-11-15", "2026-11-15T12:00:00", "now", "", "2026-02-30T00:00:00Z", "20261115T120000Z"],
)
def test_what_is_no_time_has_no_difference(then: str) -> None:
    scope = {"then": then, "system": {"timestamp": "2026-11-15T12:00:00Z"}}
    for operator in ("timediff_lt", "timediff_gt"):
        verdict = check({"field": "then", "operator": operator, "value": 0}, scope)
        assert not verdict.matched
        assert "RFC 3339" in verdict.reason


def test_without_a_clock_in_the_scope_no_time_difference_holds() -> None:
    spec = {"field": "then", "operator": "timediff_gt", "value": 0}
    verdict = check(spec, {"then": "2026-11-15T12:00:00Z"})
    assert not verdict.matched
    assert "system.timestamp is missing" in verdict.reason


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"all": [YES, one("a", "equal", 1)]},
            "conditions.all[1].operator: unknown operator 'equal'; did you mean 'equals'?",
        ),
        ([one("a", "bogus", 1)], "conditions[0].operator: unknown operator 'bogus'"),
        ([one("a", "EQUALS", 1)], "conditions[0].operator: unknown operator 'EQUALS'"),
        ([{"field": "a", "value": 1}], "conditions[0].operator: it must be one of the operators"),
        ([{"operator": "eq", "value": 1}], "conditions[0].field: it must be a path"),
        ([{"field": "", "operator": "exists"}], "conditions[0].field, column 1: it must be a path"),
        ([{"field": "a..b", "operator": "exists"}], "conditions[0].field, column 2: it must be a"),
        ([{"field": ".a", "operator": "exists"}], "conditions[0].field, column 1: it must be a"),
        ([{"field": "[0]", "operator": "exists"}], "conditions[0].field, column 1: it must be a"),
        ([{"field": "{{ a }}", "operator": "exists"}], "conditions[0].field, column 1: it must"),
        ([one("a", "equals")], "conditions[0].value: equals needs a value"),
        ([one("a", "exists", False)], "conditions[0].value: exists takes no value"),
        ([one("a", "gt", [1])], "conditions[0].value: it must be a number or a string"),
        ([one("a", "gt", True)], "conditions[0].value: it must be a number or a string"),
        ([one("a", "in", 5)], "conditions[0].value: it must be an array"),
        ([one("a", "startswith", 5)], "conditions[0].value: it must be a string"),
        ([one("a", "timediff_lt", "5")], "conditions[0].value: it must be a number of seconds"),
        ([one("a", "regex", "(")], "conditions[0].value: the pattern '(' is not valid: missing )"),
        ([one("a", "imatchregex", "a(?=b)")], "conditions[0].value: the pattern 'a(?=b)' is not"),
        ([one("a", "matchwildcard", "[z-a]")], "conditions[0].value: the pattern"),
        ([YES | {"valeu": 1}], "conditions[0]: unknown key 'valeu'; did you mean 'value'?"),
        ({"al": []}, "conditions: unknown key 'al'; did you mean 'all'?"),
        ({"all": [YES], "any": [NO]}, "conditions: all stands alone, without any"),
        ({"all": YES}, "conditions.all: it must be a list of conditions"),
        ({"any": []}, "conditions.any: it must hold at least one condition"),
        ({"not": 5}, "conditions.not: conditions are an object or a list"),
        ("event.id == 1", "conditions: conditions are an object or a list"),
        (False, "conditions: conditions are an object or a list"),
        ([5], "conditions[0]: conditions are an object or a list"),
        ({"expression": 5}, "conditions.expression: it must be a string"),
        ({"expression": ""}, "conditions.expression, column 1: expected a value, found the end"),
        ({"expression": "event.id = 1"}, "conditions.expression, column 10: = cannot stand here"),
        ({"expression": "{{ event.id = 1 }}"}, "conditions.expression, column 13: = cannot stand"),
        ({"expression": "{{ a }} or {{ b }}"}, "conditions.expression, column 6: '}' cannot stand"),
        ({"not": {"expression": "match('[', a)"}}, "conditions.not.expression, column 7: the patt"),
    ],
)
def test_a_condition_that_cannot_be_parsed_is_refused_at_its_place(
    spec: object, message: str
) -> None:
    with pytest.raises(ExpressionError) as refused:
        compile_condition(spec)
    assert refused.value.message.startswith(message)


def test_the_caller_says_where_conditions_stand_and_adds_functions() -> None:
    table = BUILTIN.extended({"succeeded": lambda scope: scope["ok"] is True})
    condition = compile_condition({"expression": "{{ succeeded() }}"}, "when", table)
    assert condition.check({"ok": True}).matched
    assert condition.check({"ok": False}) == Verdict(False, "succeeded(): it is false")
    with pytest.raises(ExpressionError, match=r"^when\.expression, column 1: there is no function"):
        compile_condition({"expression": "succeeded()"}, "when")


def test_a_condition_knows_the_names_that_it_reads() -> None:
    condition = compile_condition(
        {"all": [YES, {"not": {"expression": "keystore.a.b == pack.config.x"}}]}
    )
    assert condition.names == {"event", "keystore", "pack"}
    assert condition.paths == {
        ("event", "payload", "number"),
        ("keystore", "a", "b"),
        ("pack", "config", "x"),
    }


@pytest.mark.parametrize(
    ("wildcard", "text", "matched"),
    [
        ("*", "", True),
        ("*", "a\nb", True),
        ("a.c", "abc", False),
        ("a[.]c", "a.c", True),
        ("[]]", "]", True),
        ("[!]]", "]", False),
        ("[a", "[a", True),
        ("[^a]", "^", True),
        ("a\\d", "a\\d", True),
        ("größe-?", "größe-ß", True),
        ("web-*.example.com", "web-1.example.com.evil.org", False),
    ],
)
def test_wildcards_match_the_whole_text_as_a_shell_does(
    wildcard: str, text: str, matched: bool
) -> None:
    spec = {"field": "x", "operator": "matchwildcard", "value": wildcard}
    assert check(spec, {"x": text}).matched is matched
