"""The rules of one trigger, and which of them answer an event: as if each were asked, at the price of a few.

Most conditions ask that a field of the event equals a constant. Rules are found by such constants; one that asks
for nothing of the kind is asked itself. What the others say is made up from the values that were seen.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from attune.expressions.conditions import Verdict
from attune.expressions.judgements import shortened
from attune.expressions.requirements import Place, Refusal, Requirement, Seen, refused, seen_at
from attune.pipeline.events.model import Consideration, Event
from attune.pipeline.rules.decide import Scope, consider, for_rule, meant_for_another
from attune.pipeline.rules.model import CompiledRule

_SHARED: Final = "event"
"""What all rules see alike; the rest of a scope is the rule's own."""


@dataclass(frozen=True, slots=True)
class Match:
    rule: CompiledRule
    scope: Scope


@dataclass(frozen=True, slots=True)
class Answers:
    """`told` has those that match first, then the others, each in the order of the rules."""

    matches: list[Match]
    told: list[Consideration]


class _Leading(NamedTuple):
    """What a rule asks first, where it can be told from the value alone. `place` is a number in `_places`."""

    place: int
    value: object
    refusal: Refusal


class TriggerRules:
    """Never changed once it is made, so steps of several threads may ask at once."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self._rules = tuple(rules)
        self._number_of = {one.rule.id: number for number, one in enumerate(self._rules)}
        asked = [_requirements(one) for one in self._rules]
        numbers: dict[Place, int] = {}
        for each in asked:
            for one in each:
                numbers.setdefault(one.place, len(numbers))
        self._places = tuple(numbers)
        self._leading = [_leading(each, numbers) for each in asked]
        self._always: list[int] = []
        self._by_value: dict[int, dict[object, list[int]]] = {}
        self._file(asked, numbers)

    def __iter__(self) -> Iterator[CompiledRule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def answers(self, event: Event, scope: Scope, most: int) -> Answers:
        """`most` bounds what is told."""
        seen = [seen_at(place, scope) for place in self._places]
        matches: list[Match] = []
        asked: dict[int, Verdict] = {}
        for number in self._possible(event, seen):
            rule = self._rules[number]
            own = for_rule(scope, rule)
            asked[number] = verdict = consider(rule, event, own)
            if verdict.matched:
                matches.append(Match(rule, own))
        told = [
            Consideration(self._rules[number].rule.ref, verdict.matched, verdict.reason)
            for number, verdict in asked.items()
            if verdict.matched
        ]
        others = self._refusing(event, scope, seen, asked)
        told.extend(islice(others, max(most - len(told), 0)))
        return Answers(matches, told[:most])

    def _file(self, asked: Sequence[tuple[Requirement, ...]], numbers: Mapping[Place, int]) -> None:
        """Each under the rarest of its constants. One that never answers is not found at all."""
        counts = Counter((numbers[one.place], one.value) for each in asked for one in each)
        for number, each in enumerate(asked):
            if not _is_live(self._rules[number]):
                continue
            keys = [(numbers[one.place], one.value) for one in each]
            if not keys:
                self._always.append(number)
                continue
            place, value = min(keys, key=counts.__getitem__)
            self._by_value.setdefault(place, {}).setdefault(value, []).append(number)

    def _possible(self, event: Event, seen: Sequence[Seen]) -> list[int]:
        if event.rule is not None:
            number = self._number_of.get(event.rule)
            return [] if number is None else [number]
        found = list(self._always)
        for place, by_value in self._by_value.items():
            found += by_value.get(seen[place].value, ())
        return sorted(found)

    def _refusing(
        self, event: Event, scope: Scope, seen: Sequence[Seen], asked: Mapping[int, Verdict]
    ) -> Iterator[Consideration]:
        """Those that do not match; words that cost an evaluation are made only when they are wanted."""
        bound = None if event.rule is None else meant_for_another(event)
        for number, (one, leading) in enumerate(zip(self._rules, self._leading, strict=True)):
            if number in asked:
                if not asked[number].matched:
                    yield Consideration(one.rule.ref, matched=False, reason=asked[number].reason)
                continue
            why = bound or (_quick(leading, seen) if leading else None)
            why = why or consider(one, event, for_rule(scope, one)).reason
            yield Consideration(one.rule.ref, matched=False, reason=why)


def _requirements(one: CompiledRule) -> tuple[Requirement, ...]:
    """Those that an index over many rules can use: of what all of them see alike."""
    if not _is_live(one) or one.condition is None:
        return ()
    return tuple(each for each in one.condition.requirements if each.place.root == _SHARED)


def _leading(asked: tuple[Requirement, ...], numbers: Mapping[Place, int]) -> _Leading | None:
    if not asked or asked[0].refusal is None:
        return None
    return _Leading(numbers[asked[0].place], asked[0].value, asked[0].refusal)


def _is_live(one: CompiledRule) -> bool:
    return one.rule.enabled and one.trigger_enabled and one.condition is not None


def _quick(leading: _Leading, seen: Sequence[Seen]) -> str | None:
    """The rule's reason, where the value that it asks for first is another one."""
    place, value, refusal = leading
    if seen[place].value == value:
        return None
    why = refused(refusal, seen[place])
    return None if why is None else shortened(why)
