"""The index over the rules of a trigger answers exactly as asking each rule would."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attune.catalog.model import Rule
from attune.kernel.ids import ActionId, EventId, PackId, RuleId, TriggerId
from attune.pipeline.events.model import Consideration, Event
from attune.pipeline.rules import index
from attune.pipeline.rules.decide import compiled, consider, for_rule, scope_of
from attune.pipeline.rules.index import TriggerRules
from attune.pipeline.rules.model import CompiledRule

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRIGGER = TriggerId(1)

CONSTANTS: list[Any] = [None, True, False, 0, 1, 1.0, -1, 2.5, "", "1", "a", "b", "x" * 600]
NAMES = ["kind", "host", "list", "list.0", "deep.kind", "1"]

constants = st.sampled_from(CONSTANTS)
payloads = st.dictionaries(
    st.sampled_from(["kind", "host", "list", "deep", "1"]),
    constants | st.lists(constants, max_size=2) | st.dictionaries(st.just("kind"), constants),
)


def literal(value: Any) -> str:
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else repr(value)


def criterion(name: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": f"event.payload.{name}", "operator": operator, "value": value}


criteria = st.builds(
    criterion, st.sampled_from(NAMES), st.sampled_from(["equals", "eq", "not_equals"]), constants
) | st.sampled_from(
    [
        criterion("kind", "startswith", "a"),
        criterion("kind", "equals", [1]),
        {"field": "pack.config.kind", "operator": "equals", "value": "a"},
        {"field": "system.rule", "operator": "equals", "value": "p.r1"},
        {"field": "event.payload.kind", "operator": "exists"},
    ]
)
comparisons = st.builds(
    lambda name, value, turned: (
        f"{literal(value)} == event.payload.{name}"
        if turned
        else f"event.payload.{name} == {literal(value)}"
    ),
    st.sampled_from(["kind", "host", "deep.kind", "list[0]"]),
    constants,
    st.booleans(),
)
parts = comparisons | st.sampled_from(
    [
        "event.payload.host",
        "event.payload.kind > 0",
        "pack.config.kind == 'a'",
        "not event.payload.host",
    ]
)
expressions = st.builds(
    lambda words, joint: {"expression": joint.join(words)},
    st.lists(parts, min_size=1, max_size=3),
    st.sampled_from([" and ", " or "]),
)
conditions = st.recursive(
    criteria | expressions,
    lambda inner: (
        st.builds(lambda some: {"all": some}, st.lists(inner, max_size=3))
        | st.builds(lambda some: {"any": some}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda one: {"not": one}, inner)
        | st.lists(inner, max_size=3)
    ),
    max_leaves=5,
)


def rule(number: int, wanted: Any, *, enabled: bool = True) -> Rule:
    return Rule(
        id=RuleId(number),
        ref=f"p.r{number}",
        created=NOW,
        updated=NOW,
        pack=PackId(1),
        pack_ref="p",
        label="A rule",
        enabled=enabled,
        trigger=TRIGGER,
        trigger_ref="p.t",
        conditions=wanted,
        action=ActionId(1),
        action_ref="core.noop",
        is_adhoc=True,
    )


def event(payload: dict[str, Any], bound_to: RuleId | None = None) -> Event:
    return Event(
        id=EventId(1),
        trigger=TRIGGER,
        trigger_ref="p.t",
        payload=payload,
        rule=bound_to,
        rule_ref=None if bound_to is None else f"p.r{bound_to}",
        created=NOW,
        updated=NOW,
    )


def asked_one_by_one(
    rules: Iterable[CompiledRule], happened: Event, most: int
) -> tuple[list[RuleId], list[Consideration]]:
    scope = scope_of(happened, NOW)
    verdicts = [(one.rule, consider(one, happened, for_rule(scope, one))) for one in rules]
    told = [Consideration(each.ref, said.matched, said.reason) for each, said in verdicts]
    told.sort(key=lambda each: not each.matched)
    return [each.id for each, said in verdicts if said.matched], told[:most]


@given(
    rules=st.lists(st.tuples(conditions, st.booleans(), st.booleans()), max_size=8),
    payload=payloads,
    bound_to=st.none() | st.none() | st.integers(0, 9),
    most=st.integers(1, 10),
)
def test_the_index_says_what_every_rule_would_say(
    rules: list[tuple[Any, bool, bool]], payload: dict[str, Any], bound_to: int | None, most: int
) -> None:
    made = [
        compiled(rule(number, wanted, enabled=enabled), {"kind": "a"} if with_config else {})
        for number, (wanted, enabled, with_config) in enumerate(rules)
    ]
    happened = event(payload, None if bound_to is None else RuleId(bound_to))
    answers = TriggerRules(made).answers(happened, scope_of(happened, NOW), most)
    matched, told = asked_one_by_one(made, happened, most)
    assert [one.rule.rule.id for one in answers.matches] == matched
    assert answers.told == told
    for one in answers.matches:
        assert one.scope == for_rule(scope_of(happened, NOW), one.rule)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda value: criterion("host", "equals", value),
        lambda value: {"expression": f"event.payload.host == '{value}'"},
        lambda value: {"expression": f"event.payload.host == '{value}' and event.payload.size > 3"},
        lambda value: {"all": [criterion("host", "eq", value), criterion("size", "gt", 3)]},
        lambda value: {"all": [criterion("size", "eq", 5), criterion("host", "eq", value)]},
    ],
)
def test_of_many_rules_with_a_constant_each_only_those_are_asked_that_can_match(
    wanted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = TriggerRules([compiled(rule(each, wanted(f"h{each}")), {}) for each in range(1000)])
    asked: list[RuleId] = []

    def counted(one: CompiledRule, *rest: Any) -> Any:
        asked.append(one.rule.id)
        return consider(one, *rest)

    monkeypatch.setattr(index, "consider", counted)
    happened = event({"host": "h77", "size": 5})
    answers = rules.answers(happened, scope_of(happened, NOW), most=1)
    assert [one.rule.rule.id for one in answers.matches] == [77]
    assert asked == [77]


def test_an_event_that_is_bound_to_one_rule_asks_that_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = TriggerRules([compiled(rule(each, {}), {}) for each in range(1000)])
    asked: list[RuleId] = []

    def counted(one: CompiledRule, *rest: Any) -> Any:
        asked.append(one.rule.id)
        return consider(one, *rest)

    monkeypatch.setattr(index, "consider", counted)
    happened = event({}, RuleId(5))
    answers = rules.answers(happened, scope_of(happened, NOW), most=1000)
    assert asked == [5]
    assert len(answers.told) == 1000
    assert {each.reason for each in answers.told[1:]} == {"the event is for the rule p.r5 alone"}
