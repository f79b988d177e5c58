"""What users do to single definitions: found, listed, made by hand, changed, switched, removed."""

from typing import Any

import pytest

from attune.catalog import rows
from attune.catalog.rows import ACTIONS, PACKS, RULES, RUNTIMES, TRIGGERS
from attune.catalog.steps.actions import (
    ActionChanges,
    NewAction,
    create_action,
    delete_action,
    update_action,
)
from attune.catalog.steps.packs import NewPack, PackChanges, create_pack, delete_pack, update_pack
from attune.catalog.steps.rules import NewRule, RuleChanges, create_rule, delete_rule, update_rule
from attune.catalog.steps.runtimes import NewRuntime, create_runtime, delete_runtime
from attune.catalog.steps.switches import switch_rule, switch_trigger
from attune.catalog.steps.triggers import (
    NewTrigger,
    TriggerChanges,
    create_trigger,
    delete_trigger,
    update_trigger,
)
from attune.kernel.errors import DuplicateRow, InvalidInput, NotFound
from attune.kernel.ids import RuntimeId
from attune.store.database import Database
from tests.contract.catalog.world import LATER, NOW, get, load, load_core, refs
from tests.unit.catalog.packs import SHOP, TRIGGER


@pytest.fixture(autouse=True)
async def shop(database: Database) -> None:
    await load_core(database)
    await load(database)


def action(ref: str = "shop.mine", **fields: Any) -> NewAction:
    usual: dict[str, Any] = {"pack_ref": "shop", "label": "Mine", "entrypoint": "echo hi"}
    return NewAction(ref=ref, **{**usual, **fields})


def rule(ref: str = "shop.r", **fields: Any) -> NewRule:
    usual: dict[str, Any] = {
        "pack_ref": "shop", "label": "R", "trigger_ref": "shop.ordered", "action_ref": "core.echo",
    }  # fmt: skip
    return NewRule(ref=ref, **{**usual, **fields})


async def test_by_ref_by_id_and_by_id_as_text(database: Database) -> None:
    found = await get(database, ACTIONS, "shop.ship")
    assert await get(database, ACTIONS, found.id) == found
    assert await get(database, ACTIONS, str(found.id)) == found
    assert await database.read(rows.find, ACTIONS, "shop.none") is None
    with pytest.raises(NotFound, match="There is no action '999'"):
        await get(database, ACTIONS, "999")


async def test_pages_are_by_ref_with_totals(database: Database) -> None:
    first = await database.read(rows.page, TRIGGERS, 1, 4)
    second = await database.read(rows.page, TRIGGERS, 2, 4)
    third = await database.read(rows.page, TRIGGERS, 3, 4)
    found = [row.ref for page in (first, second, third) for row in page.items]
    assert found == sorted(found)
    assert len(found) == first.total == 9
    assert (third.page, third.page_size, len(third.items)) == (3, 4, 1)
    assert (await database.read(rows.page, TRIGGERS, 1, 5000)).page_size == 100
    assert (await database.read(rows.page, TRIGGERS, 10**15, 100)).items == []
    with pytest.raises(InvalidInput, match="counts from 1"):
        await database.read(rows.page, TRIGGERS, 0)


async def test_pages_of_a_pack_or_of_what_is_enabled(database: Database) -> None:
    pack = await get(database, PACKS, "shop")
    page = await database.read(rows.page, ACTIONS, 1, 50, "pack = :pack", pack=pack.id)
    assert ([row.ref for row in page.items], page.total) == (["shop.ship"], 1)
    await database.run(switch_rule, "shop.on_order", LATER, enabled=False)
    enabled = await database.read(rows.page, RULES, 1, 50, "enabled = :on", on=True)
    assert enabled.total == 0


async def test_a_pack_made_by_hand(database: Database) -> None:
    made = await database.run(create_pack, NewPack(ref="mine", label="M", version="1.0"), NOW)
    assert await get(database, PACKS, "mine") == made
    changed = await database.run(
        update_pack, "mine", PackChanges(description="D", tags=["a"]), LATER
    )
    assert (changed.description, changed.tags, changed.updated) == ("D", ["a"], LATER)
    assert await get(database, PACKS, "mine") == changed
    with pytest.raises(DuplicateRow, match="There is a pack 'mine' already"):
        await database.run(create_pack, NewPack(ref="mine", label="M", version="1.0"), NOW)
    with pytest.raises(InvalidInput, match="'Mine' is not a pack's ref"):
        await database.run(create_pack, NewPack(ref="Mine", label="M", version="1.0"), NOW)


async def test_deleting_a_pack_takes_its_content(database: Database) -> None:
    other = NewPack(ref="other", label="O", version="1.0.0")
    await database.run(create_pack, other, NOW)
    await database.run(create_rule, rule("other.r", pack_ref="other", action_ref="shop.ship"), NOW)
    await database.run(delete_pack, "shop")
    for kind in (ACTIONS, TRIGGERS, RULES):
        found: list[str] = await refs(database, kind)  # type: ignore[misc]
        assert not any(ref.startswith("shop.") for ref in found)
    left = await get(database, RULES, "other.r")
    assert (left.action, left.action_ref, left.trigger) == (None, "shop.ship", None)


async def test_an_action_made_by_hand(database: Database) -> None:
    made = await database.run(
        create_action, action(runtime_ref="core.shell", timeout_seconds=5), NOW
    )
    shell = await get(database, RUNTIMES, "core.shell")
    assert (made.runtime, made.is_adhoc, made.output_format) == (shell.id, True, "text")
    assert await get(database, ACTIONS, "shop.mine") == made
    with pytest.raises(DuplicateRow, match="There is an action 'shop.mine' already"):
        await database.run(create_action, action(), NOW)
    changes = ActionChanges(runtime=RuntimeId((await get(database, RUNTIMES, "core.python")).id))
    changed = await database.run(update_action, "shop.mine", changes, LATER)
    assert (changed.runtime_ref, changed.label) == ("core.python", "Mine")
    assert await get(database, ACTIONS, "shop.mine") == changed
    cleared = ActionChanges(
        runtime_ref=None, timeout_seconds=None, worker_tolerations=[{"key": "gpu"}]
    )
    changed = await database.run(update_action, made.id, cleared, LATER)
    assert (changed.runtime, changed.runtime_ref, changed.timeout_seconds) == (None, None, None)
    assert (await get(database, ACTIONS, "shop.mine")).worker_tolerations == [{"key": "gpu"}]


async def test_a_change_of_nothing_leaves_the_row(database: Database) -> None:
    before = await get(database, ACTIONS, "shop.ship")
    assert (
        await database.run(update_action, "shop.ship", ActionChanges(label="Ship"), LATER) == before
    )
    assert await database.run(update_action, "shop.ship", ActionChanges(), LATER) == before


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"label": " "}, "label: is required"),
        ({"ref": "core.x"}, "ref: 'core.x' must start with the pack's own ref, 'shop.'"),
        ({"param_schema": {"a": {"type": "x"}}}, "param_schema: a.type: unknown type 'x'"),
        ({"output_format": "xml"}, "output_format: unknown word 'xml'"),
        ({"timeout_seconds": 0}, "timeout_seconds: must be at least 1"),
        (
            {"worker_affinity": {"required": 5}},
            "worker_affinity: Expected 'array', got 'int' at '.required'",
        ),
    ],
)
async def test_a_bad_field_is_named(database: Database, fields: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await database.run(create_action, action(**{"ref": "shop.x", **fields}), NOW)
    assert refusal.value.message.startswith(text)
    assert refusal.value.fields["field"] == next(iter(fields))


async def test_what_an_action_names_must_be_there(database: Database) -> None:
    with pytest.raises(NotFound, match="There is no pack 'none'"):
        await database.run(create_action, action("none.x", pack_ref="none"), NOW)
    with pytest.raises(NotFound, match="There is no runtime 'core.perl'"):
        await database.run(create_action, action(runtime_ref="core.perl"), NOW)


async def test_a_rule_made_by_hand(database: Database) -> None:
    conditions = [{"field": "a", "operator": "equals", "value": 1}]
    made = await database.run(
        create_rule, rule(conditions=conditions, action_params={"message": "{{ x }}"}), NOW
    )
    assert (made.is_adhoc, made.conditions) == (True, {"all": conditions})
    assert await get(database, RULES, "shop.r") == made
    changed = await database.run(update_rule, "shop.r", RuleChanges(action_ref="core.noop"), LATER)
    assert changed.action == (await get(database, ACTIONS, "core.noop")).id
    assert await get(database, RULES, "shop.r") == changed
    await database.run(delete_rule, "shop.r")
    assert await refs(database, RULES) == ["shop.on_order"]


async def test_a_rules_parameters_must_fit(database: Database) -> None:
    with pytest.raises(InvalidInput, match="action_params.message: must be a string"):
        await database.run(create_rule, rule(action_params={"message": 5}), NOW)
    with pytest.raises(InvalidInput, match="trigger_params.expression: is required"):
        await database.run(create_rule, rule(trigger_ref="core.crontimer"), NOW)
    with pytest.raises(NotFound, match="There is no trigger 'core.none'"):
        await database.run(create_rule, rule(trigger_ref="core.none"), NOW)
    await database.run(create_rule, rule(), NOW)
    with pytest.raises(InvalidInput, match="action_params.seconds: is required"):
        await database.run(update_rule, "shop.r", RuleChanges(action_ref="core.sleep"), NOW)


async def test_a_rule_that_cannot_be_parsed_is_refused(database: Database) -> None:
    with pytest.raises(InvalidInput, match=r"conditions\.expression, column 5: "):
        await database.run(create_rule, rule(conditions={"expression": "a =="}), NOW)
    with pytest.raises(InvalidInput, match=r"action_params\.message, column 1: {{ is not closed"):
        await database.run(create_rule, rule(action_params={"message": "{{ x"}), NOW)
    with pytest.raises(InvalidInput, match="conditions: unknown key 'foo'"):
        await database.run(update_rule, "shop.on_order", RuleChanges(conditions={"foo": 1}), NOW)


async def test_a_rule_whose_action_is_gone_can_still_be_changed(database: Database) -> None:
    await database.run(delete_action, "shop.ship")
    await database.run(
        update_rule, "shop.on_order", RuleChanges(trigger_params={"region": "eu"}), LATER
    )
    changed = await get(database, RULES, "shop.on_order")
    assert (changed.action, changed.action_ref) == (None, "shop.ship")
    await database.run(create_action, action("shop.ship"), LATER)
    assert (await get(database, RULES, "shop.on_order")).action is not None


async def test_f38_a_switch_is_one_row_and_one_moment(database: Database) -> None:
    off = await database.run(switch_rule, "shop.on_order", LATER, enabled=False)
    assert (off.enabled, off.updated) == (False, LATER)
    assert await get(database, RULES, "shop.on_order") == off
    trigger = await database.run(switch_trigger, "shop.ordered", LATER, enabled=False)
    assert not trigger.enabled
    assert (await database.run(switch_rule, "shop.on_order", LATER, enabled=True)).enabled


async def test_triggers_and_runtimes_made_by_hand(database: Database) -> None:
    alone = await database.run(create_trigger, NewTrigger(ref="x.y", label="Y"), NOW)
    assert (alone.pack, alone.pack_ref, alone.is_adhoc) == (None, None, True)
    changed = await database.run(update_trigger, "x.y", TriggerChanges(out_schema={}), LATER)
    assert (changed.out_schema, changed.param_schema) == ({}, None)
    await database.run(delete_trigger, "x.y")
    new = NewRuntime(ref="shop.ruby", name="Ruby", pack_ref="shop", installation=["apt", 1])
    made = await database.run(create_runtime, new, NOW)
    assert await get(database, RUNTIMES, "shop.ruby") == made
    await database.run(create_action, action(runtime_ref="shop.ruby"), NOW)
    await database.run(delete_runtime, "shop.ruby")
    left = await get(database, ACTIONS, "shop.mine")
    assert (left.runtime, left.runtime_ref) == (None, "shop.ruby")
    await database.run(create_runtime, new, NOW)
    assert (await get(database, ACTIONS, "shop.mine")).runtime is not None


async def test_a_trigger_that_comes_back_has_its_rules_again(database: Database) -> None:
    await database.run(delete_trigger, "shop.ordered")
    assert (await get(database, RULES, "shop.on_order")).trigger is None
    await load(database, {**SHOP, "triggers/ordered.yaml": TRIGGER})
    trigger = await get(database, TRIGGERS, "shop.ordered")
    assert (await get(database, RULES, "shop.on_order")).trigger == trigger.id
