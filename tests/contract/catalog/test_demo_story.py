"""What the README tells about the demo pack happens: rules, a queue of two, and a failure that says why."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from attune.kernel.configuration import load_settings
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.events.model import NewEvent
from attune.pipeline.executions.model import Execution, Request
from attune.pipeline.executions.requests import Order
from attune.services.demo import DemoPack
from tests.contract.pipeline.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """As `attune up` has it."""
    async with World(load_settings({"ATTUNE__DATA_DIR": str(tmp_path)})) as world:
        await DemoPack(world.settings, world.database, world.clock).start()
        await world.start_worker()
        await world.start_executor()
        yield world


async def order(world: World, **payload: Any) -> dict[str, Execution]:
    """What came of an order, by action, once all of it has ended."""
    new = NewEvent(trigger_ref="demo.order_placed", payload=payload)
    await world.flow.record_events([new])
    await world.over()
    ids = await world.values(int, "SELECT id FROM execution ORDER BY id")
    found = [await world.ended(each) for each in ids]
    return {execution.action_ref: execution for execution in found}


async def test_an_odd_and_large_order_is_greeted_charged_and_fails_at_the_till(
    world: World,
) -> None:
    ended = await order(world, customer="Ada", amount=121)
    statuses = {ref: execution.status for ref, execution in ended.items()}
    assert statuses == {
        "demo.greet": ExecutionStatus.COMPLETED,
        "demo.charge_card": ExecutionStatus.COMPLETED,
        "demo.flaky": ExecutionStatus.FAILED,
    }
    results = {ref: execution.result or {} for ref, execution in ended.items()}
    assert "thank you" in results["demo.greet"]["stdout"]
    assert results["demo.charge_card"]["data"]["charged"] == 121
    assert results["demo.flaky"]["error"].startswith("The amount 121 is odd")


async def test_of_six_charges_two_run_and_four_wait(world: World) -> None:
    request = Request(action_ref="demo.charge_card", parameters={"amount": 500, "seconds": 0.2})
    await world.flow.request(Order((request,) * 6))
    waiting = "SELECT count(*) FROM entry WHERE state = 'queued' AND reason = 'concurrency'"
    assert await world.value(int, waiting) == 4
    await world.over()
    completed = "SELECT count(*) FROM execution WHERE status = 'completed'"
    assert await world.value(int, completed) == 6
