"""A small process that outlives its owner just long enough to clean up after it.

It reads the directories of the owner's servers from a pipe. The pipe ends when the owner ends, however it ends,
SIGKILL included; then the servers in the directories still listed are killed and their data is removed.
"""

import atexit
import subprocess
import sys
from pathlib import Path
from typing import IO

from harness.processes import destroy

ROOT = Path(__file__).resolve().parent.parent
CLEANING_BOUND = 30.0


class Watchdog:
    """The owner's end. It lives as long as the owner's process and is started with the first directory."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def watch(self, directory: Path) -> None:
        """From now on the directory goes when this process goes."""
        self._tell("watch", directory)

    def forget(self, directory: Path) -> None:
        """The owner has removed the directory itself."""
        self._tell("forget", directory)

    def _tell(self, verb: str, directory: Path) -> None:
        if self._process is None:
            self._process = self._start()
        if self._process.stdin is None:
            raise ValueError("the watchdog has no pipe")
        self._process.stdin.write(f"{verb} {directory}\n")
        self._process.stdin.flush()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.watchdog"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        # An owner that ends in good order ends the pipe itself, and sees the cleaning done.
        atexit.register(process.communicate, timeout=CLEANING_BOUND)
        return process


def guard(lines: IO[str]) -> None:
    """Follow the list until its end, then destroy what is still on it."""
    listed: list[Path] = []
    for line in lines:
        verb, _, path = line.rstrip("\n").partition(" ")
        if verb == "watch" and line.endswith("\n"):
            listed.append(Path(path))
        elif verb == "forget" and Path(path) in listed:
            listed.remove(Path(path))
    for directory in listed:
        destroy(directory)


WATCHDOG = Watchdog()

if __name__ == "__main__":
    guard(sys.stdin)
