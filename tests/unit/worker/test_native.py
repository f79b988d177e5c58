"""Native actions have outcomes like any other."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.statuses import ExecutionStatus
from attune.simulation.clock import ManualClock
from attune.worker.model import Runtime
from attune.worker.native import NativeEnd, Surroundings
from attune.worker.runner import Runner
from tests.unit.worker.worlds import World


@pytest.mark.parametrize(
    ("ref", "parameters", "stdout"),
    [
        ("core.echo", {"message": "hello"}, "hello\n"),
        ("core.echo", {}, "\n"),
        ("core.echo", {"message": {"a": 1}}, '{"a":1}\n'),
        ("core.echo", {"message": None}, "\n"),
        ("core.noop", {}, ""),
        ("core.noop", {"message": "nothing", "exit_code": "0"}, "nothing\n"),
        ("core.sleep", {"seconds": 0, "message": "zzz"}, "zzz\nSlept for 0 seconds\n"),
    ],
)
async def test_core_actions_complete(
    world: World, ref: str, parameters: dict[str, Any], stdout: str
) -> None:
    outcome = await world.run_native(ref, parameters=parameters)
    assert outcome.status is ExecutionStatus.COMPLETED
    assert outcome.result.stdout == stdout
    assert outcome.result.exit_code == 0
    assert outcome.result.data is None


async def test_noop_fails_on_demand(world: World) -> None:
    outcome = await world.run_native("core.noop", parameters={"exit_code": 4})
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.exit_code == 4
    assert outcome.result.error == "The action ended with exit code 4."


@pytest.mark.parametrize(
    ("ref", "parameters", "words"),
    [
        ("core.noop", {"exit_code": 256}, "between 0 and 255"),
        ("core.sleep", {"seconds": -1}, "0 or more"),
        ("core.sleep", {"seconds": "soon"}, "seconds"),
        ("core.unknown", {}, "no native action core.unknown"),
    ],
)
async def test_what_cannot_be_done_fails_with_a_sentence(
    world: World, ref: str, parameters: dict[str, Any], words: str
) -> None:
    outcome = await world.run_native(ref, parameters=parameters)
    assert outcome.status is ExecutionStatus.FAILED
    assert words in str(outcome.result.error)


async def test_sleep_sleeps_by_the_clock(tmp_path: Path) -> None:
    clock = ManualClock()
    world = World(tmp_path, clock=clock)
    running = asyncio.create_task(
        world.run_native("core.sleep", parameters={"seconds": 3600}, timeout_seconds=3601)
    )
    await clock.advance(3599)
    assert not running.done()
    await clock.advance(1)
    outcome = await running
    assert outcome.status is ExecutionStatus.COMPLETED
    assert outcome.result.duration_ms == 3_600_000


async def test_a_native_action_has_a_time_limit(tmp_path: Path) -> None:
    clock = ManualClock()
    world = World(tmp_path, clock=clock)
    running = asyncio.create_task(
        world.run_native(
            "core.sleep", parameters={"seconds": 60, "message": "begun"}, timeout_seconds=5
        )
    )
    await clock.advance(5)
    outcome = await running
    assert outcome.status is ExecutionStatus.TIMEOUT
    assert outcome.result.error == "The action timed out after 5 s."
    assert outcome.result.stdout == "begun\n"


async def test_f23_a_native_action_is_cancelled_at_once(world: World) -> None:
    running = asyncio.create_task(
        world.run_native("core.sleep", parameters={"seconds": 1000, "message": "begun"})
    )
    await world.ear.hears("begun")
    world.cancel.set()
    assert (await running).status is ExecutionStatus.CANCELLED


async def test_a_native_action_that_breaks_fails_its_execution_only(world: World) -> None:
    async def breaks(_parameters: Mapping[str, Any], _around: Surroundings) -> NativeEnd:
        raise KeyError("oops")

    runner = Runner(clock=SystemClock(), environment={}, natives={"core.broken": breaks})
    outcome = await runner.run(
        world.make(ref="core.broken", runtime=Runtime.NATIVE), cancel=world.cancel
    )
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.error == "Attune failed to run the action (KeyError)."
