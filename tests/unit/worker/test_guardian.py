"""A worker that is killed leaves nothing of its runs, though it can do nothing about it any more."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from attune.worker.proc import children
from harness.waiting import wait_until
from tests.unit.worker.test_stopping import FAMILY, FAMILY_SIZE
from tests.unit.worker.worlds import alive

ROOT = Path(__file__).parents[3]
# A worker of its own: runs each script that it is given, and says what they say.
WORKER = """
import asyncio, sys
from pathlib import Path
from attune.worker.model import Runtime
from tests.unit.worker.worlds import World

async def main():
    world = World(Path(sys.argv[1]))
    def say(_stream, text):
        print(text, end="", flush=True)
    for script in sys.argv[2:]:
        fields = {}
        if script.startswith("#python"):
            script = world.file("act.py", script)
            fields = {"runtime": Runtime.PYTHON, "inline": False}
        run = world.make(script, **fields)
        await world.runner.run(run, cancel=world.cancel, on_output=say)

asyncio.run(main())
"""
# In a session of its own, without a parent and without a variable: nothing but its badge is left to know it by.
NAMELESS = '(env -i PATH="$PATH" setsid bash stubborn.sh &)'
DAEMON_OF_PYTHON = r"""#python
import os, signal, sys, time
def stay():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"pid %d.\n" % os.getpid())
    time.sleep(1000)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        stay()
    os._exit(0)
os.wait()
stay()
"""


@contextmanager
def worker(folder: Path, *scripts: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WORKER, str(folder), *scripts]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def pids_said(process: subprocess.Popen[str], count: int) -> list[int]:
    stream: IO[str] | None = process.stdout
    found: list[int] = []
    while stream is not None and len(found) < count:
        line = stream.readline()
        assert line, "the worker ended"
        found += map(int, re.findall(r"^pid (\d+)\.$", line))
    return found


def guardian_of(pid: int) -> int:
    (found,) = [each for each in children(pid) if "guarding" in command_line(each)]
    return found


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()


def none_lives(pids: list[int]) -> None:
    try:
        wait_until(lambda: not any(map(alive, pids)), what=f"the end of {pids}")
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_worker_that_is_killed_leaves_no_process_of_a_shell_action(tmp_path: Path) -> None:
    with worker(tmp_path, NAMELESS + FAMILY) as process:
        pids = pids_said(process, FAMILY_SIZE + 1)
        guardian = guardian_of(process.pid)
        process.kill()
        none_lives([*pids, guardian])


def test_a_worker_that_is_killed_leaves_no_process_of_a_python_action(tmp_path: Path) -> None:
    with worker(tmp_path, DAEMON_OF_PYTHON) as process:
        pids = pids_said(process, 2)
        guardian = guardian_of(process.pid)
        process.kill()
        none_lives([*pids, guardian])


def test_signals_for_the_worker_do_not_end_its_guardian(tmp_path: Path) -> None:
    with worker(tmp_path, FAMILY) as process:
        pids = pids_said(process, FAMILY_SIZE)
        guardian = guardian_of(process.pid)
        assert os.getsid(guardian) == guardian
        wait_until(lambda: Path(f"/proc/{guardian}/cwd").readlink() == Path("/"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(guardian, number)
        os.killpg(process.pid, signal.SIGKILL)
        none_lives([*pids, guardian])


def test_a_daemon_that_a_finished_run_left_on_purpose_survives_the_worker(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    has_badge = "until [ $(ulimit -Hx) != unlimited ]; do :; done; "
    leaves = (
        f"{has_badge} setsid bash -c 'echo pid $$.; echo > {tmp_path}/fifo; exec sleep 1000' & "
    )
    with worker(tmp_path, leaves + f"read -r _ < {tmp_path}/fifo", FAMILY) as process:
        daemon, *pids = pids_said(process, 1 + FAMILY_SIZE)
        guardian = guardian_of(process.pid)
        process.kill()
        none_lives([*pids, guardian])
        survived = alive(daemon)
        os.kill(daemon, signal.SIGKILL)
        assert survived


def test_a_worker_that_ends_with_nothing_running_leaves_no_guardian(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with worker(tmp_path, f"echo pid $$.; read -r _ < {tmp_path}/fifo") as process:
        pids_said(process, 1)
        guardian = guardian_of(process.pid)
        (tmp_path / "fifo").write_text("go\n")
        process.wait(20)
        none_lives([guardian])
