"""Loading a pack is one transaction that brings rows to what the files say, and keeps what users did."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from attune.catalog import rows
from attune.catalog.loading.model import Mode
from attune.catalog.loading.steps import load_pack
from attune.catalog.rows import ACTIONS, PACKS, PERMISSION_SETS, RULES, RUNTIMES, TRIGGERS
from attune.catalog.steps.actions import NewAction, create_action
from attune.catalog.steps.packs import PackChanges, update_pack
from attune.catalog.steps.rules import NewRule, create_rule
from attune.catalog.steps.switches import switch_rule
from attune.catalog.steps.triggers import delete_trigger
from attune.catalog.steps.webhooks import enable_webhook
from attune.kernel.errors import Conflict, InvalidInput, NotFound
from attune.store.database import Database, Tx
from tests.contract.catalog.world import CORE, LATER, NOW, get, load, load_core, refs
from tests.unit.catalog.packs import ACTION, HEAD, RULE, SHOP, TRIGGER, parsed

KINDS = (PACKS, PERMISSION_SETS, RUNTIMES, TRIGGERS, ACTIONS, RULES)


async def everything(database: Database) -> list[Any]:
    found: list[Any] = []
    for kind in KINDS:
        found += (await database.read(rows.page, kind, 1, 100)).items  # type: ignore[arg-type]
    return found


async def test_the_core_pack_is_loaded_whole(database: Database) -> None:
    summary = await load_core(database)
    assert summary.pack.created == ("core",)
    assert len(summary.permission_sets.created) == 4
    assert summary.warnings == ()
    assert await refs(database, RUNTIMES) == [
        "core.native",
        "core.nodejs",
        "core.python",
        "core.shell",
    ]
    assert len(await refs(database, TRIGGERS)) == 8
    echo = await get(database, ACTIONS, "core.echo")
    native = await get(database, RUNTIMES, "core.native")
    assert (echo.runtime, echo.runtime_ref, echo.is_adhoc) == (native.id, "core.native", False)
    assert echo.param_schema == next(a for a in CORE.actions if a.ref == "core.echo").param_schema
    admin = await get(database, PERMISSION_SETS, "core.admin")
    assert (admin.pack_ref, len(admin.grants)) == ("core", 17)


async def test_loading_twice_changes_nothing(database: Database) -> None:
    await load_core(database)
    await load(database)
    before = await everything(database)
    again = await load(database, now=LATER)
    assert not again.changed
    assert again.actions.unchanged == ("shop.ship",)
    assert not (await database.run(load_pack, CORE, LATER)).changed
    assert await everything(database) == before


async def test_an_update_keeps_ids_and_removes_what_is_gone(database: Database) -> None:
    await load_core(database)
    await load(database, {**SHOP, "actions/old.yaml": ACTION.replace("ship", "old", 1)})
    before = await get(database, ACTIONS, "shop.ship")
    rule = await get(database, RULES, "shop.on_order")
    summary = await load(
        database,
        {
            **SHOP,
            "pack.yaml": HEAD.replace("1.2.3", "1.3.0"),
            "actions/ship.yaml": ACTION + "timeout: 9\n",
            "triggers/paid.yaml": TRIGGER.replace("ordered", "paid"),
        },
        LATER,
    )
    assert summary.pack.updated == ("shop",)
    assert (summary.actions.updated, summary.actions.removed) == (("shop.ship",), ("shop.old",))
    assert summary.triggers.created == ("shop.paid",)
    after = await get(database, ACTIONS, "shop.ship")
    assert (after.id, after.timeout_seconds) == (before.id, 9)
    assert (after.created, after.updated) == (NOW, LATER)
    assert (await get(database, RULES, "shop.on_order")) == rule
    with pytest.raises(NotFound, match="There is no action 'shop.old'"):
        await get(database, ACTIONS, "shop.old")


async def test_a_rule_that_is_gone_from_the_files_is_gone(database: Database) -> None:
    await load_core(database)
    await load(database)
    summary = await load(database, {k: v for k, v in SHOP.items() if not k.startswith("rules")})
    assert summary.rules.removed == ("shop.on_order",)
    assert await refs(database, RULES) == []


async def test_what_users_made_by_hand_is_kept(database: Database) -> None:
    await load_core(database)
    await load(database)
    mine = NewAction(ref="shop.mine", pack_ref="shop", label="Mine", entrypoint="echo hi")
    await database.run(create_action, mine, NOW)
    rule = NewRule(
        ref="shop.my_rule",
        pack_ref="shop",
        label="M",
        trigger_ref="shop.ordered",
        action_ref="shop.mine",
    )
    await database.run(create_rule, rule, NOW)
    summary = await load(database, {"pack.yaml": HEAD}, LATER)
    assert summary.actions.removed == ("shop.ship",)
    assert await refs(database, ACTIONS) == [
        *(ref for ref in await refs(database, ACTIONS) if ref.startswith("core.")),
        "shop.mine",
    ]
    kept = await get(database, RULES, "shop.my_rule")
    assert (kept.trigger, kept.trigger_ref) == (None, "shop.ordered")
    await load(database)
    trigger = await get(database, TRIGGERS, "shop.ordered")
    assert (await get(database, RULES, "shop.my_rule")).trigger == trigger.id


async def test_a_file_does_not_overwrite_what_was_made_by_hand(database: Database) -> None:
    await load_core(database)
    await load(database, {"pack.yaml": HEAD})
    mine = NewAction(ref="shop.ship", pack_ref="shop", label="Mine", entrypoint="echo hi")
    await database.run(create_action, mine, NOW)
    before = await everything(database)
    with pytest.raises(Conflict, match="The action 'shop.ship' was made by hand"):
        await load(database)
    assert await everything(database) == before


async def test_users_switches_and_configuration_survive_an_update(database: Database) -> None:
    await load_core(database)
    with_config = {**SHOP, "pack.yaml": HEAD + "config: {url: a, size: 1}\n"}
    await load(database, with_config)
    await database.run(update_pack, "shop", PackChanges(config={"url": "mine", "size": 1}), NOW)
    await database.run(switch_rule, "shop.on_order", NOW, enabled=False)
    await database.run(enable_webhook, "shop.ordered", "wh_1", NOW)
    await load(
        database,
        {
            **SHOP,
            "pack.yaml": HEAD + "config: {url: b, size: 2}\n",
            "rules/on_order.yaml": RULE.replace("On order", "Renamed"),
            "triggers/ordered.yaml": TRIGGER.replace("Ordered", "Renamed"),
        },
        LATER,
    )
    assert (await get(database, PACKS, "shop")).config == {"url": "mine", "size": 2}
    rule = await get(database, RULES, "shop.on_order")
    assert (rule.label, rule.enabled) == ("Renamed", False)
    trigger = await get(database, TRIGGERS, "shop.ordered")
    assert (trigger.label, trigger.webhook_key) == ("Renamed", "wh_1")


async def test_a_failing_rule_leaves_nothing_of_its_pack(database: Database) -> None:
    await load_core(database)
    before = await everything(database)
    bad = {
        **SHOP,
        "rules/lost.yaml": "ref: lost\ntrigger_ref: orderd\naction_ref: core.ecko\n",
        "actions/perl.yaml": ACTION.replace("shop.ship", "shop.perl").replace(
            "python", "other.perl"
        ),
    }
    with pytest.raises(InvalidInput) as refusal:
        await load(database, bad)
    assert refusal.value.fields["faults"] == [
        "actions/perl.yaml: runner_type: unknown runtime 'other.perl'",
        "rules/lost.yaml: trigger_ref: unknown trigger 'shop.orderd'; did you mean 'shop.ordered'?",
        "rules/lost.yaml: action_ref: unknown action 'core.ecko'; did you mean 'core.echo'?",
    ]
    assert await everything(database) == before


async def test_a_late_failure_leaves_the_old_version_untouched(database: Database) -> None:
    await load_core(database)
    await load(database)
    before = await everything(database)

    async def load_then_fail(tx: Tx) -> None:
        await load_pack(tx, parsed({"pack.yaml": HEAD.replace("1.2.3", "2.0.0")}), LATER)
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        await database.run(load_then_fail)
    assert await everything(database) == before


async def test_a_rule_may_not_rest_on_what_its_own_update_removes(database: Database) -> None:
    await load_core(database)
    await load(database)
    without_trigger = {k: v for k, v in SHOP.items() if not k.startswith("triggers")}
    with pytest.raises(InvalidInput, match="trigger_ref: unknown trigger 'shop.ordered'"):
        await load(database, without_trigger)


async def test_modes(database: Database) -> None:
    await load_core(database)
    await load(database, mode=Mode.NEW, pack_dir="shop/1")
    with pytest.raises(Conflict, match="There is a pack 'shop' already; force updates it"):
        await load(database, mode=Mode.NEW, pack_dir="shop/2")
    await database.run(delete_trigger, "shop.ordered")
    assert not (await load(database, mode=Mode.CHANGED, pack_dir="shop/1")).changed
    assert (await load(database, mode=Mode.FORCE, pack_dir="shop/1")).triggers.created
    changed = await load(database, mode=Mode.CHANGED, pack_dir="shop/2")
    assert changed.pack.updated == ("shop",)
    assert (await get(database, PACKS, "shop")).pack_dir == "shop/2"


async def test_two_loads_at_once_make_one_pack(database: Database) -> None:
    await load_core(database)
    versions = [{**SHOP, "pack.yaml": HEAD.replace("1.2.3", f"1.2.{n}")} for n in range(6)]
    summaries = await asyncio.gather(*(load(database, files) for files in versions))
    assert sum(bool(summary.pack.created) for summary in summaries) == 1
    assert len({summary.pack_id for summary in summaries}) == 1
    assert await refs(database, RULES) == ["shop.on_order"]
    refusals = await asyncio.gather(
        *(
            load(database, {"pack.yaml": "ref: other\nversion: 1.0.0"}, mode=Mode.NEW)
            for _ in range(5)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(refusal, Conflict) for refusal in refusals) == 4


async def test_others_are_told_after_the_commit(database: Database) -> None:
    heard: list[str] = []
    database.listen(rows.TOPIC, heard.append)
    await load_core(database)
    await load(database)
    async with asyncio.timeout(10):
        while "shop" not in heard:
            await asyncio.sleep(0.01)
    heard.clear()
    await load(database, now=LATER)
    await asyncio.sleep(0.2)
    assert heard == []


async def test_parameters_of_a_rule_that_do_not_fit_are_warnings(database: Database) -> None:
    await load_core(database)
    rule = "ref: r\ntrigger_ref: core.crontimer\naction_ref: core.sleep\naction_params: {seconds: soon}\n"
    summary = await load(database, {**SHOP, "rules/r.yaml": rule})
    assert summary.warnings == (
        "rules/r.yaml: trigger_params.expression: is required",
        "rules/r.yaml: action_params.seconds: must be a number",
    )


@pytest.mark.parametrize(
    "text", ["ä \U0001f600 'quoted' \"x\" \\", "line\nline", "{{ event.payload }}"]
)
async def test_text_comes_back_as_it_was_written(database: Database, text: str) -> None:
    await load_core(database)
    source = parsed(SHOP)
    rule = replace(source.rules[0], action_params={"t": [text]})
    await database.run(load_pack, replace(source, rules=(rule,)), NOW)
    assert (await get(database, RULES, "shop.on_order")).action_params == {"t": [text]}
