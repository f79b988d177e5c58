"""What a policy says is what the queue of its action does, also for what waits there already."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from attune.catalog.loading.model import Mode
from attune.catalog.steps.policies import (
    NewPolicy,
    PolicyChanges,
    create_policy,
    delete_policy,
    update_policy,
)
from attune.kernel.configuration import load_settings
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.world import World
from tests.unit.catalog.packs import SHOP, archive

WAITING = "SELECT count(*) FROM entry WHERE state = 'queued'"


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path)}
    if request.param == "postgresql":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("postgresql_url")
    async with World(load_settings(environ)) as world:
        yield world


async def limit(world: World, most: int, **fields: Any) -> None:
    defaults = {"ref": "core.noop_limit", "scope_type": "action", "scope_ref": "core.noop"}
    new = NewPolicy(**{**defaults, "concurrency_limit": most, **fields})
    await world.database.run(create_policy, new, world.clock.now())


async def ask(world: World, action_ref: str, times: int) -> int:
    """How many of these have to wait for a slot; nobody runs the others meanwhile."""
    await world.new_flow("api", through=False).request(
        Order((Request(action_ref=action_ref),) * times)
    )
    waiting: int = await world.value(int, WAITING)
    return waiting


async def test_a_limit_that_came_with_a_pack_holds(world: World) -> None:
    policy = "ref: slowly\naction_ref: ship\nconcurrency: {limit: 2}\n"
    files = {**SHOP, "policies/slowly.yaml": policy}
    await world.installer.install_archive(archive(files), Mode.NEW)
    assert await ask(world, "shop.ship", 5) == 3


async def test_the_highest_priority_is_in_effect_and_disabled_ones_are_not(world: World) -> None:
    await limit(world, 5)
    await limit(world, 1, ref="core.a", priority=1)
    await limit(world, 0, ref="core.b", priority=2, enabled=False)
    assert await ask(world, "core.noop", 4) == 3


async def test_a_blackout_that_is_written_as_dates_holds_for_all_of_the_last_day(
    world: World,
) -> None:
    today = world.clock.now().date()
    dates = {"from": str(today - timedelta(days=1)), "to": str(today)}
    await limit(world, 5, blackouts=[dates])
    assert await ask(world, "core.noop", 2) == 2


async def test_a_window_holds_what_is_asked_for_outside_of_it(world: World) -> None:
    day_after = (world.clock.now() + timedelta(days=2)).strftime("%a").lower()
    window = {"days": [day_after], "start": "08:00", "end": "17:00"}
    await limit(world, 5, windows=[window])
    assert await ask(world, "core.noop", 2) == 2


@pytest.mark.parametrize(
    "changes", [PolicyChanges(concurrency_limit=1), PolicyChanges(enabled=False), None]
)
async def test_what_a_limit_of_zero_held_goes_as_soon_as_it_is_raised_or_gone(
    world: World, changes: PolicyChanges | None
) -> None:
    await world.start_worker()
    await world.start_executor()
    await limit(world, 0)
    execution = await world.run("core.noop")
    assert (await world.execution(execution.id)).status is ExecutionStatus.REQUESTED
    assert await world.value(int, WAITING) == 1
    if changes is None:
        await world.database.run(delete_policy, "core.noop_limit")
    else:
        now = world.clock.now()
        await world.database.run(update_policy, "core.noop_limit", changes, now)
    await world.flow.arrange()
    assert (await world.ended(execution.id)).status is ExecutionStatus.COMPLETED
