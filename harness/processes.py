"""The processes of a server, known by their working directory.

Servers start processes of their own, in sessions of their own, and some outlive their parent. What they all share
is the working directory they were started in, which lies in a temporary directory that belongs to one server
alone. So that directory says which processes to signal, with no list of ids that could grow old.
"""

import os
import shutil
import signal
import time
from pathlib import Path

KILL_BOUND = 10.0


def processes_in(directory: Path) -> list[int]:
    """The ids of the living processes that work inside the directory."""
    inside = str(directory)
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    return [pid for pid in pids if _is_inside(_working_directory(pid), inside)]


def signal_all(directory: Path, number: signal.Signals) -> None:
    """Send a signal to every process that works inside the directory."""
    for pid in processes_in(directory):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def kill_all(directory: Path) -> None:
    """Kill until nothing is left, because a process may start another while it is being killed."""
    deadline = time.monotonic() + KILL_BOUND
    while processes_in(directory):
        signal_all(directory, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"processes in {directory} outlive SIGKILL: {processes_in(directory)}"
            )
        time.sleep(0.005)


def destroy(directory: Path) -> None:
    """Kill what works inside the directory, then remove it."""
    kill_all(directory)
    shutil.rmtree(directory, ignore_errors=True)


def _working_directory(pid: int) -> str:
    """Empty for a process that has ended, waits to be reaped, or belongs to somebody else."""
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


def _is_inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith((directory + "/", directory + " (deleted)"))
