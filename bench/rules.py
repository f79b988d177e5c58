"""What it costs to find out which of 10,000 rules answer an event, and with which execution; nothing is written.

An event meets the rules of its trigger alone. Most triggers here have ten, one has a thousand; one rule of each answers.
"""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attune.catalog.steps.rules import NewRule, create_rule
from attune.catalog.steps.triggers import NewTrigger, create_trigger
from attune.catalog.versions import current_version
from attune.kernel.configuration import load_settings
from attune.kernel.ids import EnforcementId, EventId, ExecutionId, TriggerId
from attune.pipeline.enforcements.decide import Resolution, resolve
from attune.pipeline.enforcements.model import Enforcement
from attune.pipeline.events.model import Event
from attune.pipeline.executions.actions import ActionBook
from attune.pipeline.rules.book import RuleBook
from attune.pipeline.rules.decide import scope_of
from attune.pipeline.rules.model import CompiledRule
from attune.store.database import Tx
from attune.telemetry.logs import configure_logs
from bench.measure import Gauge
from bench.results import MICROSECONDS
from harness.control_plane import ControlPlane

FEW: Final = 10
MANY: Final = 1_000
TOTAL: Final = 10_000
ACTION: Final = "core.noop"
_TIMES: Final = 200
_TOLD: Final = 1_000


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Gauge]]:
    times = _TIMES // 10 if quick else _TIMES
    with TemporaryDirectory() as name:
        settings = load_settings(
            {"ATTUNE__LOG__LEVEL": "warning", "ATTUNE__DATA_DIR": str(Path(name))}
        )
        configure_logs(settings.log)
        async with ControlPlane(settings) as plane:
            matching = Matching(plane)
            crowded = await matching.add_rules(MANY)
            usual, *_ = [await matching.add_rules(FEW) for _ in range((TOTAL - MANY) // FEW)]
            yield [
                Gauge(
                    f"{TOTAL:,} rules, {count:,} of the event's trigger",
                    MICROSECONDS,
                    lambda trigger=trigger: matching.measure(trigger, times),  # type: ignore[misc]
                )
                for trigger, count in ((usual, FEW), (crowded, MANY))
            ]


class Matching:
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._rules = RuleBook()
        self._actions = ActionBook()
        self._triggers = 0

    async def add_rules(self, count: int) -> TriggerId:
        """A trigger with so many rules, in one transaction."""
        self._triggers += 1
        return await self._plane.database.run(_add, f"core.t{self._triggers}", count, self._now)

    async def measure(self, trigger: TriggerId, times: int) -> Mapping[str, float]:
        database = self._plane.database
        await database.run(self._answers, trigger, 1)  # compiles what the catalog's version needs
        return {"": await database.run(self._answers, trigger, times) * 1e6}

    async def _answers(self, tx: Tx, trigger: TriggerId, times: int) -> float:
        """Seconds for one event."""
        version = await current_version(tx)
        event = _event(trigger, self._now)
        start = time.perf_counter()
        for _ in range(times):
            found = await self._answer(tx, version, event)
            assert len(found) == 1, found
        return (time.perf_counter() - start) / times

    async def _answer(self, tx: Tx, version: int, event: Event) -> list[Resolution]:
        assert event.trigger is not None
        scope = scope_of(event, self._now)
        rules = await self._rules.of_triggers(tx, version, {event.trigger})
        answers = rules[event.trigger].answers(event, scope, most=_TOLD)
        actions = await self._actions.find(tx, version, {ACTION}, self._now)
        return [
            resolve(
                _enforcement(match.rule, event),
                match.rule,
                actions[ACTION],
                match.scope,
                execution_id=ExecutionId(1),
                now=self._now,
            )
            for match in answers.matches
        ]

    @property
    def _now(self) -> datetime:
        return self._plane.clock.now()


async def _add(tx: Tx, trigger_ref: str, count: int, now: datetime) -> TriggerId:
    trigger = await create_trigger(tx, NewTrigger(ref=trigger_ref, label=trigger_ref), now)
    for number in range(count):
        rule = NewRule(
            ref=f"{trigger_ref}_{number}",
            pack_ref="core",
            label="A rule",
            trigger_ref=trigger_ref,
            action_ref=ACTION,
            conditions={"expression": f"event.payload.kind == {number} and event.payload.size > 3"},
            action_params={"size": "{{ event.payload.size }}"},
        )
        await create_rule(tx, rule, now)
    return trigger.id


def _event(trigger: TriggerId, now: datetime) -> Event:
    return Event(
        id=EventId(1),
        trigger=trigger,
        trigger_ref="core.t",
        payload={"kind": FEW // 2, "size": 7},
        created=now,
        updated=now,
    )


def _enforcement(rule: CompiledRule, event: Event) -> Enforcement:
    return Enforcement(
        id=EnforcementId(1),
        rule=rule.rule.id,
        rule_ref=rule.rule.ref,
        event=event.id,
        trigger_ref=event.trigger_ref,
        created=event.created,
        updated=event.created,
    )
