"""The demo pack loads without a word, its rules answer as its texts promise, and every action runs."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from attune.catalog.model import ActionDefinition
from attune.catalog.schemas import compile_schema
from attune.catalog.sources.folder import read_pack
from attune.expressions.conditions import compile_condition
from attune.expressions.templates import compile_template
from attune.kernel.clock import SystemClock
from attune.kernel.ids import ActionDefinitionId, ExecutionId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.scheduling.hand_off import HandOff
from attune.services.demo import DEMO_PACK
from attune.worker.assembly import Places, assembled
from attune.worker.model import Outcome
from attune.worker.output import OnOutput, unheard
from attune.worker.runner import Runner
from tests.unit.worker.worlds import Ear

PACK = read_pack(DEMO_PACK)
DEMO_ACTIONS = {action.ref: action for action in PACK.actions}
RULES = {rule.ref: rule for rule in PACK.rules}


def definition_of(ref: str) -> ActionDefinition:
    fields = msgspec.structs.asdict(DEMO_ACTIONS[ref])
    kept = {name: fields[name] for name in fields if name in ActionDefinition.__struct_fields__}
    return ActionDefinition(
        action_ref=ref,
        pack_ref=PACK.ref,
        pack_version=PACK.version,
        pack_dir=DEMO_PACK.name,
        is_inline=False,
        execution_config={},
        **kept,
    )


async def run(
    folder: Path,
    ref: str,
    parameters: dict[str, Any],
    cancel: asyncio.Event | None = None,
    heard: OnOutput = unheard,
) -> Outcome:
    """The action as a worker runs it, with the defaults of its schema."""
    hand_off = HandOff(
        execution=ExecutionId(7),
        lane=LaneId(1),
        attempt=1,
        definition=ActionDefinitionId(1),
        action_ref=ref,
        status=ExecutionStatus.SCHEDULED,
        config=compile_schema(DEMO_ACTIONS[ref].param_schema).check(parameters),
        env_vars=None,
        rule_ref=None,
        trigger_ref=None,
        timeout_seconds=DEMO_ACTIONS[ref].timeout_seconds,
        executor=None,
        permission_set_refs=None,
    )
    places = Places(DEMO_PACK.parent, folder / "work", folder / "artifacts")
    made = assembled(hand_off, definition_of(ref), places, None, lambda _: None)
    runner = Runner(clock=SystemClock(), environment={"PATH": os.environ["PATH"]})
    try:
        return await runner.run(made, cancel=cancel or asyncio.Event(), on_output=heard)
    finally:
        await runner.close()


def test_it_is_a_pack_like_any_other_without_a_warning() -> None:
    assert (PACK.ref, PACK.is_standard, PACK.warnings) == ("demo", False, ())
    assert PACK.meta == {"shipped_with": "attune"}
    assert {trigger.ref for trigger in PACK.triggers} == {"demo.order_placed"}
    for source in (*PACK.triggers, *PACK.actions, *PACK.policies, *PACK.rules):
        assert source.description, source.ref


def test_the_card_is_limited_to_two() -> None:
    [policy] = PACK.policies
    assert (policy.scope_ref, policy.concurrency_limit) == ("demo.charge_card", 2)


def answers(payload: dict[str, Any]) -> dict[str, Any]:
    """Which rules answer an order, and with which parameters for their actions."""
    scope = {"event": {"payload": payload}}
    found = {}
    for ref, rule in RULES.items():
        if compile_condition(rule.conditions, "conditions").check(scope).matched:
            template = compile_template(rule.action_params, "action_params")
            rendered = template.render(scope, strict=False)
            assert rendered.missing == (), (ref, rendered.missing)
            schema = compile_schema(DEMO_ACTIONS[rule.action_ref].param_schema)
            assert isinstance(rendered.value, dict)
            found[rule.action_ref] = schema.check(rendered.value)
    return found


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({}, {"demo.greet"}),
        ({"amount": 100}, {"demo.greet"}),
        ({"amount": 120}, {"demo.greet", "demo.charge_card"}),
        ({"amount": 13}, {"demo.greet", "demo.flaky"}),
        ({"amount": 121}, {"demo.greet", "demo.charge_card", "demo.flaky"}),
        ({"amount": "121"}, {"demo.greet"}),
    ],
)
def test_the_rules_answer_orders_as_they_say(payload: dict[str, Any], expected: set[str]) -> None:
    assert set(answers(payload)) == expected


def test_what_an_order_says_reaches_the_actions_and_the_rest_has_defaults() -> None:
    full = answers({"customer": "Ada", "item": "a loom", "amount": 121})
    assert full["demo.greet"] == {"customer": "Ada", "item": "a loom"}
    assert full["demo.charge_card"] == {"customer": "Ada", "amount": 121, "seconds": 1}
    assert full["demo.flaky"] == {"amount": 121}
    assert answers({})["demo.greet"] == {"customer": "friend", "item": "something nice"}


async def test_greet_greets_whatever_the_name(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "demo.greet", {"customer": "$(id) O'Hara", "item": "a `loom`"})
    assert outcome.status is ExecutionStatus.COMPLETED, outcome.result.stderr
    assert outcome.result.stdout == "Hello $(id) O'Hara, thank you for ordering a `loom`!\n"


async def test_charge_card_gives_a_receipt(tmp_path: Path) -> None:
    parameters = {"customer": "Ada", "amount": 120, "seconds": 0}
    outcome = await run(tmp_path, "demo.charge_card", parameters)
    assert outcome.status is ExecutionStatus.COMPLETED, outcome.result.stderr
    assert outcome.result.data == {"customer": "Ada", "charged": 120, "receipt": "demo-7"}


async def test_flaky_fails_on_an_odd_amount_and_says_why(tmp_path: Path) -> None:
    good = await run(tmp_path, "demo.flaky", {"amount": 12})
    assert (good.status, good.result.stdout) == (ExecutionStatus.COMPLETED, "The till took 12.\n")
    bad = await run(tmp_path, "demo.flaky", {"amount": 13})
    assert (bad.status, bad.result.exit_code) == (ExecutionStatus.FAILED, 1)
    assert bad.result.error == "The amount 13 is odd, and this till takes even amounts only."


async def test_report_tells_of_each_page_while_it_works(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "demo.report", {"pages": 3, "seconds": 0})
    lines = outcome.result.stdout.splitlines()
    assert lines[:3] == [f"Page {page} of 3 is written." for page in (1, 2, 3)]
    assert outcome.result.data == {"pages": 3}
    ear, cancel = Ear(), asyncio.Event()
    slow = {"pages": 100, "seconds": 0.1}
    running = asyncio.create_task(run(tmp_path, "demo.report", slow, cancel, ear))
    await ear.hears("Page 1 of 100 is written.\n")
    cancel.set()
    assert (await running).status is ExecutionStatus.CANCELLED
