"""The book of compiled rules is never older than the transaction that asks it, and reads no more than was changed."""

from datetime import timedelta
from typing import Any

import pytest

from attune.catalog.steps.actions import NewAction, create_action, delete_action
from attune.catalog.steps.packs import PackChanges, update_pack
from attune.catalog.steps.rules import RuleChanges, delete_rule, update_rule
from attune.catalog.steps.switches import switch_rule, switch_trigger
from attune.catalog.steps.triggers import NewTrigger, create_trigger, delete_trigger
from attune.catalog.versions import current_version, raise_version
from attune.kernel.ids import RuleId, TriggerId
from attune.pipeline.rules import book as rule_book
from attune.pipeline.rules.book import RuleBook
from attune.pipeline.rules.decide import compiled
from attune.pipeline.rules.index import TriggerRules
from attune.store.database import Tx
from tests.contract.pipeline.world import World

ACTION = NewAction(ref="core.packed", pack_ref="core", label="Packed", runtime_ref="core.native")


class Reader:
    """A book, and the ids of the rules that it compiled since it was last asked for them."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._book = RuleBook()
        self._compiled: list[RuleId] = []
        monkeypatch.setattr(rule_book, "compiled", self._compile)

    async def rules(self) -> TriggerRules:
        return await self._world.database.read(self._read)

    def compiled(self) -> list[RuleId]:
        found, self._compiled = sorted(self._compiled), []
        return found

    async def _read(self, tx: Tx) -> TriggerRules:
        trigger = await tx.one(TriggerId, "SELECT id FROM trigger WHERE ref = 'shop.order'")
        return (await self._book.of_triggers(tx, await current_version(tx), {trigger}))[trigger]

    def _compile(self, rule: Any, config: dict[str, Any]) -> Any:
        self._compiled.append(rule.id)
        return compiled(rule, config)


@pytest.fixture
def reader(still: World, monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(still, monkeypatch)


async def test_a_change_of_one_rule_compiles_that_one_alone(still: World, reader: Reader) -> None:
    first, second = await still.rule("first"), await still.rule("second")
    assert [one.rule.ref for one in await reader.rules()] == [first.ref, second.ref]
    assert reader.compiled() == [first.id, second.id]
    changes = RuleChanges(conditions={"expression": "event.payload.amount == 3"})
    await still.database.run(update_rule, second.ref, changes, still.clock.now())
    found = list(await reader.rules())
    assert found[1].rule.conditions == changes.conditions
    assert reader.compiled() == [second.id]


async def test_changes_of_one_moment_or_by_a_clock_that_is_behind_are_all_seen(
    still: World, reader: Reader
) -> None:
    rule, now = await still.rule("first"), still.clock.now()
    await reader.rules()
    for amount, at in ((1, now), (2, now), (3, now - timedelta(hours=1))):
        changes = RuleChanges(conditions={"expression": f"event.payload.amount == {amount}"})
        await still.database.run(update_rule, rule.ref, changes, at)
        [found] = await reader.rules()
        assert found.rule.conditions == changes.conditions


async def test_a_rule_whose_trigger_and_action_went_and_came_back_answers_again(
    still: World, reader: Reader
) -> None:
    now = still.clock.now()
    await still.database.run(create_action, ACTION, now)
    rule = await still.rule("first", action_ref=ACTION.ref)
    assert [one.rule.action for one in await reader.rules()] == [rule.action]
    await still.database.run(delete_trigger, "shop.order")
    await still.database.run(delete_action, ACTION.ref)
    trigger = NewTrigger(ref="shop.order", pack_ref="shop", label="Order")
    await still.database.run(create_trigger, trigger, now)
    action = await still.database.run(create_action, ACTION, now)
    assert [one.rule.action for one in await reader.rules()] == [action.id] != [rule.action]


async def test_a_change_elsewhere_leaves_the_index_as_it_is(still: World, reader: Reader) -> None:
    await still.rule("first")
    before = await reader.rules()
    await still.database.run(raise_version)
    assert await reader.rules() is before


async def test_rules_that_go_come_and_are_switched_are_seen_at_once(
    still: World, reader: Reader
) -> None:
    first, second = await still.rule("first"), await still.rule("second")
    await reader.rules()
    await still.database.run(delete_rule, first.ref)
    third = await still.rule("third")
    await still.database.run(switch_rule, second.ref, still.clock.now(), enabled=False)
    found = [(one.rule.id, one.rule.enabled) for one in await reader.rules()]
    assert found == [(second.id, False), (third.id, True)]


async def test_a_trigger_that_is_switched_off_and_on_again_is_seen_at_once(
    still: World, reader: Reader
) -> None:
    await still.rule("first")
    for enabled in (True, False, True):
        await still.database.run(switch_trigger, "shop.order", still.clock.now(), enabled=enabled)
        assert [one.trigger_enabled for one in await reader.rules()] == [enabled]


async def test_a_new_configuration_of_the_pack_compiles_its_rules_again(
    still: World, reader: Reader
) -> None:
    rule = await still.rule("first")
    await reader.rules()
    reader.compiled()
    changes = PackChanges(config={"greeting": "welcome"})
    await still.database.run(update_pack, "shop", changes, still.clock.now())
    assert [one.pack_config for one in await reader.rules()] == [{"greeting": "welcome"}]
    assert reader.compiled() == [rule.id]
