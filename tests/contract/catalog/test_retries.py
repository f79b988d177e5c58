"""Retries and limits go from a pack's files to what is run: a limit makes another definition, a retry does not."""

from datetime import datetime
from typing import Any

import pytest

from attune.catalog import rows
from attune.catalog.definitions import definition, definition_of
from attune.catalog.retrying import Cause, Limits, Retries, Retry
from attune.catalog.rows import ACTIONS
from attune.catalog.schemas import compile_schema
from attune.catalog.steps.actions import ActionChanges, NewAction, create_action, update_action
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import ActionDefinitionId, ExecutionId
from attune.pipeline.executions.decide import new_execution
from attune.pipeline.executions.model import Request
from attune.store.database import Database, Tx
from tests.contract.catalog.world import LATER, NOW, get, load, load_core
from tests.unit.catalog.packs import ACTION, SHOP

RETRYING = ACTION + "max_retries: 3\nretry: {delay: 5, backoff: linear, on: [timeout]}\n"
LIMITED = RETRYING + "limits: {memory_mb: 64, cpu_seconds: 2}\nreuse: true\n"


@pytest.fixture(autouse=True)
async def core(database: Database) -> None:
    await load_core(database)


def shop(action: str) -> dict[str, str]:
    return {**SHOP, "actions/ship.yaml": action}


async def defined(tx: Tx, now: datetime) -> ActionDefinitionId:
    return await definition_of(tx, await rows.get(tx, ACTIONS, "shop.ship"), now)


async def retries_of(database: Database, **asked: Any) -> Retries | None:
    """What an execution that is asked for now would have."""
    action = await get(database, ACTIONS, "shop.ship")
    request = Request(action_ref=action.ref, **asked)
    schema = compile_schema(None)
    number = await database.run(defined, NOW)
    return new_execution(request, action, number, schema, id=ExecutionId(1), now=NOW).retry


async def test_a_pack_s_retries_and_limits_are_kept_as_its_file_says(database: Database) -> None:
    summary = await load(database, shop(LIMITED))
    assert summary.actions.created == ("shop.ship",)
    found = await get(database, ACTIONS, "shop.ship")
    assert found.retry == Retry(delay=5, backoff="linear", on=(Cause.TIMEOUT,))
    assert (found.limits, found.reuse) == (Limits(memory_mb=64, cpu_seconds=2), True)
    again = await load(database, shop(LIMITED), LATER)
    assert again.actions.unchanged == ("shop.ship",)
    gone = await load(database, SHOP, LATER)
    assert gone.actions.updated == ("shop.ship",)
    plain = await get(database, ACTIONS, "shop.ship")
    assert (plain.retry, plain.limits, plain.reuse, plain.max_retries) == (None, None, False, 0)


async def test_a_changed_limit_is_another_definition_and_a_changed_retry_is_not(
    database: Database,
) -> None:
    await load(database, shop(RETRYING))
    first = await database.run(defined, NOW)
    await load(database, shop(RETRYING.replace("delay: 5", "delay: 50")), LATER)
    assert await database.run(defined, NOW) == first
    await load(database, shop(LIMITED), LATER)
    limited = await database.run(defined, NOW)
    assert limited != first
    kept = await database.read(definition, limited)
    assert (kept.limits, kept.reuse) == (Limits(memory_mb=64, cpu_seconds=2), True)
    before = await database.read(definition, first)
    assert (before.limits, before.reuse) == (None, False)


async def test_a_changed_retry_reaches_what_is_asked_for_from_then_on(database: Database) -> None:
    await load(database, shop(RETRYING))
    how = Retry(delay=5, backoff="linear", on=(Cause.TIMEOUT,))
    assert await retries_of(database) == Retries(max_retries=3, how=how)
    await load(database, shop(RETRYING.replace("delay: 5", "delay: 50")), LATER)
    changed = await retries_of(database)
    assert changed is not None
    assert changed.how.delay == 50
    own = await retries_of(database, max_retries=1, retry=Retry(delay=9))
    assert own == Retries(max_retries=1, how=Retry(delay=9))
    assert await retries_of(database, max_retries=0) is None


async def test_an_action_made_by_hand_takes_and_loses_them(database: Database) -> None:
    await load(database)
    new = NewAction(
        ref="shop.mine",
        pack_ref="shop",
        label="Mine",
        retry={"delay": 1, "max_delay": None},
        limits={"processes": 4},
        reuse=True,
    )
    made = await database.run(create_action, new, NOW)
    assert (made.retry, made.limits) == (Retry(delay=1), Limits(processes=4))
    assert await get(database, ACTIONS, "shop.mine") == made
    same = ActionChanges(retry=Retry(delay=1), limits={"processes": 4})
    assert await database.run(update_action, "shop.mine", same, LATER) == made
    cleared = ActionChanges(retry=None, limits=None, reuse=False)
    changed = await database.run(update_action, "shop.mine", cleared, LATER)
    assert (changed.retry, changed.limits, changed.reuse) == (None, None, False)
    assert await get(database, ACTIONS, "shop.mine") == changed


async def test_a_fault_changes_nothing(database: Database) -> None:
    await load(database, shop(LIMITED))
    before = await get(database, ACTIONS, "shop.ship")
    wrong = ActionChanges(
        label="Other",
        retry={"delay": 1, "jiter": 1},
        limits={"memory_mb": -1},
        required_worker_runtimes={"python": "three"},
    )
    with pytest.raises(InvalidInput) as refusal:
        await database.run(update_action, "shop.ship", wrong, LATER)
    assert refusal.value.fields["problems"] == {
        "required_worker_runtimes.python": (
            "'three' is no version constraint; use *, 3.11, >=3.10,<4, ==3.11, !=3.11, ~=3.10, ^1.2 or ~1.2"
        ),
        "retry.jiter": "an unknown field; did you mean 'jitter'?",
        "limits.memory_mb": "must be at least 1",
    }
    assert await get(database, ACTIONS, "shop.ship") == before
