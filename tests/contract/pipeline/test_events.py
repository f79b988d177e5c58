"""An event meets rules: what answers, what does not and why, and that nothing answers twice."""

import asyncio

import pytest

from attune.catalog.steps.rules import RuleChanges, delete_rule, update_rule
from attune.catalog.steps.switches import switch_rule, switch_trigger
from attune.kernel.envelope import Stamp
from attune.kernel.errors import InvalidInput, NotFound
from attune.kernel.ids import EnforcementId
from attune.kernel.messages import (
    EnforcementCreated,
    EventCreated,
    ExecutionCompleted,
    ExecutionRequested,
    MessageType,
)
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.enforcements.model import Enforcement, EnforcementStatus
from attune.pipeline.events.model import NewEvent
from attune.store import schema
from attune.store.database import Tx
from tests.contract.pipeline.world import World, eventually

LARGE = {"expression": "event.payload.amount > 100"}


async def executions(world: World) -> int:
    return int(await world.value(int, "SELECT count(*) FROM execution"))


async def test_an_event_becomes_an_execution_with_the_rules_parameters(world: World) -> None:
    text = "{{ pack.config.greeting }} {{ event.payload.name }}"
    rule = await world.rule(conditions=LARGE, action_params={"message": text})
    event = await world.emit({"amount": 120, "name": "Ann"})
    await world.over()
    [enforcement] = await world.enforcements()
    assert (enforcement.status, enforcement.rule, enforcement.event) == (
        EnforcementStatus.PROCESSED,
        rule.id,
        event.id,
    )
    found = await world.value(
        int, "SELECT id FROM execution WHERE enforcement = :e", e=enforcement.id
    )
    execution = await world.execution(found)
    assert execution.config["message"] == "hello Ann"
    assert (execution.rule_ref, execution.trigger_ref) == ("shop.on_order", "shop.order")
    assert execution.status is ExecutionStatus.COMPLETED


async def test_where_the_stages_are_apart_messages_carry_the_event_on(apart: World) -> None:
    await apart.rule()
    event = await apart.emit({"amount": 1})
    assert (await apart.event(event.id)).rules is not None
    await apart.over()
    assert await executions(apart) == 1


async def test_a_rule_that_does_not_match_makes_no_enforcement_and_the_event_tells_why(
    world: World,
) -> None:
    await world.rule("large", conditions=LARGE)
    await world.rule("off", enabled=False)
    event = await world.event((await world.emit({"amount": 7})).id)
    assert event.rules is not None
    told = {one.rule_ref: one for one in event.rules}
    assert not told["shop.large"].matched
    assert "7" in told["shop.large"].reason
    assert told["shop.off"].reason == "the rule is disabled"
    assert await world.enforcements() == []


async def test_a_disabled_trigger_makes_its_rules_silent_and_they_say_so(world: World) -> None:
    await world.rule()
    now = world.clock.now()
    await world.database.run(switch_trigger, "shop.order", now, enabled=False)
    event = await world.event((await world.emit({})).id)
    assert [one.reason for one in event.rules or []] == ["the trigger is disabled"]
    await world.database.run(switch_trigger, "shop.order", now, enabled=True)
    await world.emit({})
    assert len(await world.enforcements()) == 1


async def test_f35_zero_false_and_an_empty_text_are_values(world: World) -> None:
    conditions = [
        {"field": "event.payload.count", "operator": "equals", "value": 0},
        {"field": "event.payload.flag", "operator": "equals", "value": False},
        {"field": "event.payload.text", "operator": "equals", "value": ""},
    ]
    await world.rule(conditions=conditions)
    await world.emit({"count": 0, "flag": False, "text": ""})
    assert len(await world.enforcements()) == 1


async def test_f36_a_regex_on_a_number_does_not_match_and_stops_nothing(world: World) -> None:
    pattern = {"field": "event.payload.n", "operator": "matchregex", "value": "^(a+)+$"}
    await world.rule(conditions=[pattern])
    await world.emit({"n": 5})
    await world.emit({"n": "a" * 5000 + "b"})
    assert await world.enforcements() == []
    await world.emit({"n": "aaa"})
    assert len(await world.enforcements()) == 1


async def test_f37_a_template_keeps_the_type_and_a_missing_name_is_told(world: World) -> None:
    parameters = {"data": "{{ event.payload.list }}", "other": "{{ event.payload.nothing }}"}
    await world.rule(action_params=parameters)
    await world.emit({"list": [1, {"a": None}]})
    await world.over()
    [enforcement] = await world.enforcements()
    execution = await world.execution(await world.value(int, "SELECT id FROM execution"))
    assert execution.config["data"] == [1, {"a": None}]
    assert execution.config["other"] is None
    assert enforcement.warnings == ["event.payload.nothing has no value"]


async def test_f37_a_strict_rule_refuses_a_missing_name(world: World) -> None:
    await world.rule(action_params={"message": "{{ event.payload.nothing }}"}, strict=True)
    await world.emit({})
    [enforcement] = await world.enforcements()
    assert enforcement.status is EnforcementStatus.DISABLED
    assert "event.payload.nothing" in (enforcement.reason or "")
    assert await executions(world) == 0


async def test_parameters_that_do_not_fit_end_the_enforcement_with_the_reason(world: World) -> None:
    await world.rule(action_ref="core.sleep", action_params={"seconds": "{{ event.payload.s }}"})
    await world.emit({"s": "long"})
    [enforcement] = await world.enforcements()
    assert enforcement.status is EnforcementStatus.DISABLED
    assert "seconds" in (enforcement.reason or "")
    assert await executions(world) == 0


async def test_an_unknown_trigger_refuses_all_events_of_a_call(world: World) -> None:
    await world.rule()
    events = [NewEvent(trigger_ref="shop.order"), NewEvent(trigger_ref="shop.nothing")]
    with pytest.raises(NotFound, match=r"shop\.nothing"):
        await world.flow.record_events(events)
    assert await world.value(int, "SELECT count(*) FROM event") == 0


async def test_an_event_for_one_rule_is_answered_by_that_rule_alone(world: World) -> None:
    mine = await world.rule("mine")
    await world.rule("other")
    event = await world.event((await world.emit({}, rule=mine.id)).id)
    assert (event.rule, event.rule_ref) == (mine.id, "shop.mine")
    [enforcement] = await world.enforcements()
    assert enforcement.rule == mine.id


async def test_an_event_for_a_rule_of_another_trigger_is_refused(world: World) -> None:
    rule = await world.rule()
    new = NewEvent(trigger_ref="core.webhook", rule=rule.id)
    with pytest.raises(InvalidInput, match="another trigger"):
        await world.flow.record_events([new])


async def test_a_repeated_idempotency_key_makes_one_event(world: World) -> None:
    await world.rule()
    events = await asyncio.gather(*(world.emit({}, idempotency_key="once") for _ in range(5)))
    assert len({event.id for event in events}) == 1
    await world.over()
    assert await executions(world) == 1


async def test_f33_messages_that_come_twice_make_nothing_twice(world: World) -> None:
    await world.rule()
    event = await world.emit({})
    await world.over()
    [enforcement] = await world.enforcements()
    [execution_id] = await world.values(int, "SELECT id FROM execution")
    before = await world.execution(execution_id)
    stamp = Stamp("a test", world.clock, world.ids)
    completed = ExecutionCompleted(
        execution_id=execution_id,
        action_id=before.action or 0,  # type: ignore[arg-type]
        action_ref=before.action_ref,
        status=ExecutionStatus.COMPLETED,
        completed_at=world.clock.now(),
    )
    for _ in range(2):
        await world.bus.publish(
            stamp.envelope(MessageType.EVENT_CREATED, EventCreated(event_id=event.id)),
            stamp.envelope(
                MessageType.ENFORCEMENT_CREATED, EnforcementCreated(enforcement_id=enforcement.id)
            ),
            stamp.envelope(
                MessageType.EXECUTION_REQUESTED, ExecutionRequested(execution_id=execution_id)
            ),
            stamp.envelope(MessageType.EXECUTION_COMPLETED, completed),
        )
    after = await world.emit({})
    await world.event(after.id)
    await world.over()
    assert await executions(world) == 2
    assert len(await world.enforcements()) == 2
    assert await world.execution(execution_id) == before
    assert await world.value(int, "SELECT total_completed FROM lane") == 2


async def test_f33_two_processes_that_process_one_event_make_one_execution(still: World) -> None:
    flows = [still.new_flow(f"executor {n}", through=True) for n in range(3)]
    await still.rule()
    accepting = still.new_flow("api", through=False)
    new = [NewEvent(trigger_ref="shop.order") for _ in range(20)]
    events = await accepting.record_events(new)
    ids = [event.id for event in events]
    await still.start_worker()
    await asyncio.gather(*(flow.process_events(ids) for flow in flows for _ in range(3)))
    await still.over()
    assert await executions(still) == 20


class TestARuleThatChangesWhileItsEventIsInFlight:
    """F38: the event is answered by the rules as they are when it is processed."""

    async def _recorded(self, world: World) -> int:
        flow = world.new_flow("api", through=False)
        [event] = await flow.record_events([NewEvent(trigger_ref="shop.order", payload={"n": 1})])
        return event.id

    async def test_f38_disabled(self, still: World) -> None:
        await still.rule()
        await still.start_worker()
        warm = await still.emit({})
        event_id = await self._recorded(still)
        now = still.clock.now()
        await still.database.run(switch_rule, "shop.on_order", now, enabled=False)
        await still.flow.process_events([event_id])  # type: ignore[list-item]
        assert (await still.event(event_id)).rules[0].reason == "the rule is disabled"  # type: ignore[index]
        assert {one.event for one in await still.enforcements()} == {warm.id}

    async def test_f38_edited(self, still: World) -> None:
        await still.rule(action_params={"message": "old"})
        await still.start_worker()
        await still.emit({})
        event_id = await self._recorded(still)
        changes = RuleChanges(action_params={"message": "new {{ event.payload.n }}"})
        await still.database.run(update_rule, "shop.on_order", changes, still.clock.now())
        await still.flow.process_events([event_id])  # type: ignore[list-item]
        newest = await still.value(int, "SELECT max(id) FROM execution")
        assert (await still.execution(newest)).config["message"] == "new 1"

    async def test_f38_deleted(self, still: World) -> None:
        await still.rule()
        event_id = await self._recorded(still)
        await still.database.run(delete_rule, "shop.on_order")
        await still.flow.process_events([event_id])  # type: ignore[list-item]
        assert (await still.event(event_id)).rules == []
        assert await still.enforcements() == []


class TestAnEnforcementOfOthers:
    """`enforcement.created` from anybody who has written the row."""

    async def _created(
        self, world: World, *, enabled: bool = True, **fields: object
    ) -> EnforcementId:
        rule = await world.rule(
            conditions=LARGE,
            action_params={"message": "{{ event.payload.amount }} paid"},
            enabled=enabled,
        )

        async def insert(tx: Tx) -> EnforcementId:
            [new] = await tx.next_ids(schema.enforcement)
            now = world.clock.now()
            values: dict[str, object] = {"payload": {"amount": 500}, **fields}
            row = Enforcement(
                id=EnforcementId(new),
                rule=rule.id,
                rule_ref=rule.ref,
                event=None,
                trigger_ref="shop.order",
                created=now,
                updated=now,
                **values,  # type: ignore[arg-type]
            )
            await tx.insert(schema.enforcement, [row])
            return row.id

        return await world.database.run(insert)

    async def _resolved(self, world: World, enforcement_id: EnforcementId) -> Enforcement:
        item = EnforcementCreated(enforcement_id=enforcement_id)
        stamp = Stamp("others", world.clock, world.ids)
        await world.bus.publish(stamp.envelope(MessageType.ENFORCEMENT_CREATED, item))

        async def resolved() -> Enforcement | None:
            [found] = await world.enforcements()
            return found if found.status is not EnforcementStatus.CREATED else None

        return await eventually(resolved)

    async def test_it_becomes_an_execution(self, world: World) -> None:
        found = await self._resolved(world, await self._created(world))
        assert found.status is EnforcementStatus.PROCESSED
        await world.over()
        assert await executions(world) == 1

    async def test_its_conditions_are_judged(self, world: World) -> None:
        found = await self._resolved(world, await self._created(world, payload={"amount": 5}))
        assert found.status is EnforcementStatus.DISABLED
        assert "does not answer" in (found.reason or "")

    async def test_a_disabled_rule_makes_none(self, world: World) -> None:
        found = await self._resolved(world, await self._created(world, enabled=False))
        assert found.status is EnforcementStatus.DISABLED
        assert "disabled" in (found.reason or "")


async def test_an_orphaned_message_becomes_a_dead_letter_and_blocks_nothing(world: World) -> None:
    letters: list[str] = []

    async def keep(letter: object) -> None:
        letters.append(str(getattr(letter, "queue", "")))

    await world.bus.consume_dead_letters(keep)
    stamp = Stamp("others", world.clock, world.ids)
    item = EnforcementCreated(enforcement_id=EnforcementId(987654))
    await world.bus.publish(stamp.envelope(MessageType.ENFORCEMENT_CREATED, item))

    async def buried() -> bool:
        return letters == ["executor.enforcement.created"]

    await eventually(buried)
    await world.rule()
    await world.emit({})
    await world.over()
    assert await executions(world) == 1


async def test_an_event_whose_message_was_lost_is_found_by_the_fallback(still: World) -> None:
    await still.rule()
    flow = still.new_flow("api", through=False)
    await flow.record_events([NewEvent(trigger_ref="shop.order")])
    await still.start_worker()
    await still.start_executor()

    async def made() -> bool:
        return await executions(still) == 1

    await eventually(made)
    await still.over()
