"""From events to enforcements to executions, a batch at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from attune.catalog.versions import current_version
from attune.kernel.ids import EnforcementId, EventId, ExecutionId, RuleId, TriggerId
from attune.kernel.messages import EnforcementCreated, MessageType
from attune.pipeline.enforcements.decide import Resolution, disabled, resolve
from attune.pipeline.enforcements.model import Enforcement
from attune.pipeline.events import steps as events
from attune.pipeline.events.model import Consideration, Event
from attune.pipeline.executions.actions import ActionBook
from attune.pipeline.executions.model import Execution
from attune.pipeline.outbox import Outbox
from attune.pipeline.rules.book import RuleBook
from attune.pipeline.rules.decide import Scope, consider, for_rule, scope_of
from attune.pipeline.rules.index import TriggerRules
from attune.pipeline.rules.model import CompiledRule
from attune.store import schema
from attune.store.database import Tx

_COLUMNS = ", ".join(Enforcement.__struct_fields__)
# The names in these statements are those of our own structs.
_CREATED: Final = f"""
    SELECT {_COLUMNS} FROM enforcement WHERE id = ANY(:ids::bigint[]) AND status = 'created'
     ORDER BY id FOR UPDATE SKIP LOCKED
"""  # noqa: S608
_OPEN_IDS: Final = """
    SELECT id FROM enforcement WHERE status = 'created' AND id > :after ORDER BY id LIMIT :limit
"""
_ANSWERED: Final = "SELECT event, rule FROM enforcement WHERE event = ANY(:ids::bigint[])"
_PROCESSED: Final = """
    UPDATE event SET processed_at = :now, rules = v.rules
      FROM ROWS(:events AS v(id bigint, rules jsonb)) WHERE event.id = v.id
"""
_RESOLVE: Final = """
    UPDATE enforcement SET status = v.status, reason = v.reason, warnings = v.warnings,
           config = v.config, resolved_at = :now, updated = :now
      FROM ROWS(:resolved AS v(id bigint, status text, reason text, warnings jsonb, config jsonb))
     WHERE enforcement.id = v.id
"""
_CONSIDERATIONS_AT_MOST: Final = 1000


class _Answer(msgspec.Struct, frozen=True):
    event: EventId
    rule: RuleId | None


@dataclass(frozen=True, slots=True)
class _Match:
    event: Event
    rule: CompiledRule
    scope: Scope


@dataclass(frozen=True, slots=True)
class Books:
    """What a process has compiled."""

    actions: ActionBook
    rules: RuleBook


async def process_events(
    tx: Tx, books: Books, outbox: Outbox, ids: Sequence[EventId], now: datetime
) -> list[Execution]:
    """Let the rules answer those events that nobody has processed; the executions that came of it, which are
    written when they join their lanes."""
    locked = await events.lock_unprocessed(tx, ids)
    # After the events, so that no rule is older than one of them.
    version = await current_version(tx)
    found = locked.rows
    if not found:
        return []
    triggers = {event.trigger for event in found if event.trigger is not None}
    rules = await books.rules.of_triggers(tx, version, triggers)
    matches, told = _considered(found, rules, now)
    matches = await _unanswered(tx, matches)
    resolutions = await _resolutions(tx, books, version, matches, now)
    await tx.insert_later(schema.enforcement, [one.enforcement for one in resolutions])
    await tx.later(_PROCESSED, events=told, now=now)
    for one in resolutions:
        enforcement = one.enforcement
        item = EnforcementCreated(
            enforcement_id=enforcement.id, rule_id=enforcement.rule, event_id=enforcement.event
        )
        outbox.put(MessageType.ENFORCEMENT_CREATED, item)
    return _made(outbox, resolutions)


async def process_enforcements(
    tx: Tx, books: Books, outbox: Outbox, ids: Sequence[EnforcementId], now: datetime
) -> list[Execution]:
    """Resolve enforcements that somebody else has created; one that is resolved already is left alone. The
    executions are as with events."""
    locked = await tx.answer_later(Enforcement, _CREATED, ids=ids)
    version = await current_version(tx)
    found = locked.rows
    if not found:
        return []
    rules = await books.rules.by_id(tx, {one.rule for one in found if one.rule is not None})
    resolutions = [await _resolved(tx, books, version, one, rules, now) for one in found]
    await tx.later(_RESOLVE, resolved=[_columns(one.enforcement) for one in resolutions], now=now)
    return _made(outbox, resolutions)


async def open_enforcements(tx: Tx, after: int, limit: int) -> list[EnforcementId]:
    return await tx.all(EnforcementId, _OPEN_IDS, after=after, limit=limit)


def _considered(
    found: Sequence[Event], rules: Mapping[TriggerId, TriggerRules], now: datetime
) -> tuple[list[_Match], list[tuple[EventId, list[Consideration]]]]:
    """The rules that answer, and for each event what every rule said."""
    matches: list[_Match] = []
    told: list[tuple[EventId, list[Consideration]]] = []
    for event in found:
        of_trigger = rules.get(event.trigger) if event.trigger is not None else None
        if of_trigger is None:
            told.append((event.id, []))
            continue
        answers = of_trigger.answers(event, scope_of(event, now), _CONSIDERATIONS_AT_MOST)
        matches += (_Match(event, one.rule, one.scope) for one in answers.matches)
        told.append((event.id, answers.told))
    return matches, told


async def _unanswered(tx: Tx, matches: list[_Match]) -> list[_Match]:
    """An event that comes a second time, or that others have answered, makes no second enforcement of a rule."""
    if not matches:
        return []
    answers = await tx.all(_Answer, _ANSWERED, ids=sorted({one.event.id for one in matches}))
    answered = {(one.event, one.rule) for one in answers}
    return [one for one in matches if (one.event.id, one.rule.rule.id) not in answered]


async def _resolutions(
    tx: Tx, books: Books, version: int, matches: Sequence[_Match], now: datetime
) -> list[Resolution]:
    if not matches:
        return []
    refs = {one.rule.rule.action_ref for one in matches}
    actions = await books.actions.find(tx, version, refs, now)
    enforcement_ids = await tx.next_ids(schema.enforcement, len(matches))
    execution_ids = await tx.next_ids(schema.execution, len(matches))
    return [
        resolve(
            _enforcement(EnforcementId(enforcement_id), match, now),
            match.rule,
            actions.get(match.rule.rule.action_ref),
            match.scope,
            execution_id=ExecutionId(execution_id),
            now=now,
        )
        for enforcement_id, execution_id, match in zip(
            enforcement_ids, execution_ids, matches, strict=True
        )
    ]


async def _resolved(
    tx: Tx,
    books: Books,
    version: int,
    enforcement: Enforcement,
    rules: dict[RuleId, CompiledRule],
    now: datetime,
) -> Resolution:
    """One that came from outside: its conditions are judged here, because nobody has yet."""
    rule = rules.get(enforcement.rule) if enforcement.rule is not None else None
    if rule is None:
        return disabled(enforcement, "The rule is gone.", now)
    event = await _event_of(tx, enforcement)
    scope = for_rule(scope_of(event, now), rule)
    verdict = consider(rule, event, scope)
    if not verdict.matched:
        return disabled(enforcement, f"The rule does not answer: {verdict.reason}.", now)
    actions = await books.actions.find(tx, version, {rule.rule.action_ref}, now)
    [execution_id] = await tx.next_ids(schema.execution)
    return resolve(
        enforcement,
        rule,
        actions.get(rule.rule.action_ref),
        scope,
        execution_id=ExecutionId(execution_id),
        now=now,
    )


async def _event_of(tx: Tx, enforcement: Enforcement) -> Event:
    """Its event; where it has none, what it carries itself stands for one."""
    if enforcement.event is not None:
        event = await events.get_event(tx, enforcement.event)
        return msgspec.structs.replace(event, rule=None)
    return Event(
        id=EventId(0),
        trigger=None,
        trigger_ref=enforcement.trigger_ref,
        payload=enforcement.payload or {},
        created=enforcement.created,
        updated=enforcement.updated,
    )


def _made(outbox: Outbox, resolutions: Sequence[Resolution]) -> list[Execution]:
    new = [one.execution for one in resolutions if one.execution is not None]
    for one in new:
        outbox.created(one)
    return new


def _enforcement(enforcement_id: EnforcementId, match: _Match, now: datetime) -> Enforcement:
    rule = match.rule.rule
    return Enforcement(
        id=enforcement_id,
        rule=rule.id,
        rule_ref=rule.ref,
        event=match.event.id,
        trigger_ref=match.event.trigger_ref,
        condition="any" if "any" in rule.conditions else "all",
        conditions=rule.conditions,
        created=now,
        updated=now,
    )


def _columns(one: Enforcement) -> tuple[object, ...]:
    return (one.id, one.status, one.reason, one.warnings, one.config)
