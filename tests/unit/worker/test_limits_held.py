"""Limits as an action meets them, in each language."""

import signal

import pytest

from attune.catalog.retrying import Limits
from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Outcome, Runtime
from tests.unit.worker.worlds import World, survivors

SUFFIXES = {Runtime.SHELL: "sh", Runtime.PYTHON: "py", Runtime.NODE: "js"}
BUSY = {
    Runtime.SHELL: "while :; do :; done",
    Runtime.PYTHON: "while True: pass",
    Runtime.NODE: "while (true) {}",
}
GREEDY = {
    Runtime.SHELL: "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done",
    Runtime.PYTHON: "x = []\nwhile True: x.append(bytearray(10**6))",
    Runtime.NODE: "const x = []; while (true) x.push(Buffer.alloc(1e6, 1));",
}
OPENS_FILES = {
    Runtime.SHELL: "for n in {1..200}; do exec {x}< /dev/null; done",
    Runtime.PYTHON: "x = [open('/dev/null') for n in range(200)]",
    Runtime.NODE: "for (let n = 0; n < 200; n++) require('fs').openSync('/dev/null')",
}
MODEST = {
    Runtime.SHELL: "cat > /dev/null; echo fine",
    Runtime.PYTHON: "import json, subprocess; print('fine')",
    Runtime.NODE: "console.log('fine')",
}


async def run(world: World, runtime: Runtime, text: str, limits: Limits) -> Outcome:
    entrypoint = world.file(f"act.{SUFFIXES[runtime]}", text)
    return await world.run_file(runtime, entrypoint, limits=limits)


@pytest.mark.parametrize("runtime", BUSY)
async def test_cpu_time(world: World, runtime: Runtime) -> None:
    outcome = await run(world, runtime, BUSY[runtime], Limits(cpu_seconds=0.5))
    assert outcome.status is ExecutionStatus.FAILED
    assert outcome.result.exit_code == 128 + signal.SIGXCPU
    assert "limit of 1 s of CPU time" in str(outcome.result.error)
    assert "it used 1." in str(outcome.result.error)
    assert not list(world.pack.glob("**/core*"))


async def test_cpu_time_of_one_that_does_not_listen(world: World) -> None:
    text = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    outcome = await run(world, Runtime.PYTHON, text, Limits(cpu_seconds=1))
    assert outcome.result.exit_code == 128 + signal.SIGKILL
    assert "limits.cpu_seconds" in str(outcome.result.error)


async def test_cpu_time_of_a_child_of_the_script(world: World) -> None:
    outcome = await world.run("bash -c 'while :; do :; done'", limits=Limits(cpu_seconds=1))
    assert outcome.result.exit_code == 128 + signal.SIGXCPU
    assert "one that it started" in str(outcome.result.error)


@pytest.mark.parametrize("runtime", GREEDY)
async def test_memory(world: World, runtime: Runtime) -> None:
    outcome = await run(world, runtime, GREEDY[runtime], Limits(memory_mb=200))
    assert outcome.status is ExecutionStatus.FAILED
    assert "200 MB of memory for each process (limits.memory_mb)" in str(outcome.result.error)


@pytest.mark.parametrize("runtime", OPENS_FILES)
async def test_open_files(world: World, runtime: Runtime) -> None:
    outcome = await run(world, runtime, OPENS_FILES[runtime], Limits(open_files=60))
    assert outcome.status is ExecutionStatus.FAILED
    assert "60 open files for each process (limits.open_files)" in str(outcome.result.error)


@pytest.mark.parametrize("runtime", MODEST)
async def test_whoever_stays_within_all_limits_notices_none(world: World, runtime: Runtime) -> None:
    limits = Limits(cpu_seconds=20, memory_mb=200, open_files=60, processes=20, output_mb=1)
    outcome = await run(world, runtime, MODEST[runtime], limits)
    assert outcome.result.stdout == "fine\n", outcome.result
    assert outcome.status is ExecutionStatus.COMPLETED


async def test_an_inline_script_has_its_limits_too(world: World) -> None:
    limits = Limits(cpu_seconds=7, memory_mb=50, open_files=30)
    outcome = await world.run('ulimit -t; ulimit -n; echo "$a"', limits=limits, parameters={"a": 1})
    assert outcome.result.stdout == "7\n30\n1\n", outcome.result


async def test_processes_of_a_run_are_counted_wherever_they_hide(world: World) -> None:
    outcome = await world.run(
        "for n in 1 2 3; do sleep 1000 & (setsid sleep 1000 &); done; wait",
        limits=Limits(processes=6),
    )
    assert outcome.status is ExecutionStatus.FAILED
    assert "limit of 6 processes at once (limits.processes): there were 7." in str(
        outcome.result.error
    )
    assert survivors(world.execution_id) == []


async def test_one_that_breeds_without_end_is_ended(world: World) -> None:
    outcome = await world.run(
        "breed() { sleep 0.05; breed & breed & wait; }; breed", limits=Limits(processes=20)
    )
    assert outcome.status is ExecutionStatus.FAILED
    assert "limits.processes" in str(outcome.result.error)
    assert survivors(world.execution_id) == []


async def test_output_that_is_kept_is_bounded_by_the_action_s_own_limit(world: World) -> None:
    outcome = await world.run("seq 100000; echo end >&2", limits=Limits(output_mb=0.015625))
    assert outcome.status is ExecutionStatus.COMPLETED
    assert outcome.result.stdout.endswith(
        "[The rest of this output was cut: 0.015625 MB are kept.]\n"
    )
    assert len(outcome.result.stdout) < 17_000
    assert outcome.result.stderr == "end\n"
