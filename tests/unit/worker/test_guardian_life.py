"""The guardian itself: when it comes and goes, and what it takes for a run."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attune.kernel.clock import SystemClock
from attune.simulation.clock import ManualClock
from attune.worker.guardian import Guardian
from attune.worker.guarding import Guarded, told_runs
from attune.worker.proc import Identity, look
from harness.waiting import wait_until
from tests.unit.worker.worlds import alive


def identity(pid: int) -> Identity:
    process = look(pid)
    assert process is not None
    return process.identity


@contextmanager
def sleeper() -> Iterator[Identity]:
    """A process that stands for a run's first."""
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        yield identity(process.pid)
    finally:
        process.kill()
        process.wait()


async def test_a_guardian_that_is_closed_ends_at_once_and_is_reaped() -> None:
    guardian = Guardian(SystemClock())
    with sleeper() as run:
        guardian.add(run)
        pid = guardian.pid
        guardian.remove(run)
        await guardian.close()
        await guardian.close()
        assert pid is not None
        assert look(pid) is None
        assert alive(run.pid)


async def test_a_guardian_that_nobody_holds_any_more_ends_by_itself() -> None:
    guardian = Guardian(SystemClock())
    with sleeper() as run:
        guardian.add(run)
        pid = guardian.pid
        guardian.remove(run)
        assert pid is not None
        assert alive(pid)
        del guardian
        wait_until(lambda: not alive(pid))
        os.waitpid(pid, 0)


async def test_a_guardian_has_nothing_of_the_worker_but_its_pipe() -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    guardian = Guardian(SystemClock())
    with sleeper() as run:
        guardian.add(run)
        pid = guardian.pid
        wait_until(lambda: Path(f"/proc/{pid}/cwd").readlink() == Path("/"))
        assert {entry.name for entry in Path(f"/proc/{pid}/fd").iterdir()} == {"0", "1", "2"}
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        guardian.remove(run)
    await guardian.close()
    os.close(reading)
    os.close(writing)


async def test_a_guardian_that_was_killed_is_replaced_and_told_of_all_runs() -> None:
    clock = ManualClock()
    guardian = Guardian(clock)
    with sleeper() as first, sleeper() as second:
        guardian.add(first)
        killed = guardian.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not alive(killed))
        await clock.advance(60)
        guardian.add(second)
        assert guardian.pid not in (None, killed)
        assert look(killed) is None
        guardian.remove(first)
        guardian.remove(second)
        await guardian.close()


async def test_a_guardian_that_does_not_listen_is_replaced_and_nobody_waits_for_it() -> None:
    clock = ManualClock()
    guardian = Guardian(clock)
    with sleeper() as run, sleeper() as other:
        guardian.add(run)
        deaf = guardian.pid
        assert deaf is not None
        os.kill(deaf, signal.SIGSTOP)
        await clock.advance(60)
        for _ in range(10_000):
            guardian.add(other)
            guardian.remove(other)
        assert not alive(deaf)
        guardian.remove(run)
        await guardian.close()


def test_a_number_that_was_given_anew_is_not_taken_for_a_run() -> None:
    with sleeper() as process:
        earlier = Identity(process.pid, process.started - 1)
        assert Guarded({earlier}, 0).living() == []
        assert [each.identity for each in Guarded({process}, 0).living()] == [process]


def test_what_was_told_last_of_a_run_counts() -> None:
    lines = ["+5 100", "+6 100", "-5", "+7 200", "-7", "+7 300"]
    assert told_runs(iter(lines)) == {Identity(6, 100), Identity(7, 300)}
