"""All processes of a run are found, whoever started them, and at little cost where there are none."""

import os
import signal
import subprocess
import sys

import pytest

from attune.kernel.clock import SystemClock
from attune.kernel.statuses import ExecutionStatus
from attune.worker import proc
from attune.worker.badges import pin
from attune.worker.descendants import Descendants, Lineage, Reach
from harness.waiting import wait_until
from tests.unit.worker.worlds import World, alive, survivors

# Stands for a process that forks first processes of runs: it starts one, says its number, and tells how it ended.
PARENT = """
import os, sys
pid = os.fork()
if pid == 0:
    os.setsid()
    os.execvp("bash", ["bash", "-c", sys.argv[1]])
print(f"pid {pid}.", flush=True)
sys.stdin.readline()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


async def test_a_cancel_finds_what_left_session_parent_and_environment_before(
    world: World,
) -> None:
    has_badge = "until [ $(ulimit -Hx) != unlimited ]; do :; done"
    nameless = '(env -i PATH="$PATH" setsid bash stubborn.sh &)'
    running = world.start(f"{has_badge}\n{nameless}\nsleep 1000")
    (pid,) = await world.ear.hears_pids(1)
    world.cancel.set()
    outcome = await running
    assert outcome.status is ExecutionStatus.CANCELLED
    assert not alive(pid)


async def test_a_run_that_another_process_started_ends_whole_and_its_body_is_left_to_that_one(
    world: World,
) -> None:
    script = (
        "(setsid sleep 1000 &); (sleep 1000 &); trap '' TERM; echo ready; while :; do sleep 1; done"
    )
    environment = {**os.environ, "ATTUNE_EXEC_ID": str(world.execution_id)}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, script],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        said = {parent.stdout.readline(), parent.stdout.readline()}
        (pid,) = [int(line[4:-2]) for line in said if line.startswith("pid")]
        descendants = Descendants(SystemClock())
        descendants.add(pid)
        lineage = Lineage(pid, f"ATTUNE_EXEC_ID={world.execution_id}".encode())
        pin(lineage.identity)
        assert descendants.count(lineage) >= 3
        assert await descendants.end(lineage, signal.SIGKILL, 10, Reach.EVERYTHING)
        descendants.remove(pid)
        descendants.sweep()
        assert alive(parent.pid)
        assert set(survivors(world.execution_id)) == {parent.pid}
        assert [parent.stdin.write("\n"), parent.stdin.flush()] == [1, None]
        assert parent.stdout.readline() == f"{-signal.SIGKILL}\n"


async def test_the_end_of_a_run_that_left_nothing_costs_a_few_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    descendants = Descendants(SystemClock())
    descendants.sweep()
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        descendants.add(process.pid)
        lineage = Lineage(process.pid, b"ATTUNE_EXEC_ID=0")
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: not alive(process.pid))
        for body in proc.adopted(os.getpid()) - {process.pid}:
            descendants.add(body)
        looks: list[str] = []
        read = proc._read
        monkeypatch.setattr(proc, "_read", lambda path: looks.append(path) or read(path))  # type: ignore[func-returns-value]
        assert await descendants.end(lineage, signal.SIGKILL, 10, Reach.SESSION)
        descendants.sweep()
        assert len(looks) == 2
