"""An `attune` process: started, known to be ready by its own word, looked at, and stopped."""

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import psutil

COMMAND: Final = Path(sys.executable).with_name("attune")
_PATIENCE: Final = 60.0
_READY: Final = "Ready."


class ProcessFailed(Exception):
    """A process of Attune ended or was not ready in time; carries the end of what it wrote."""


class AttuneProcess:
    """`started_in` is how long it took from its spawning to its readiness, in seconds; `cpu` what it used for it."""

    def __init__(self, *arguments: str, variables: Mapping[str, str]) -> None:
        self.started_in = 0.0
        self.cpu = 0.0
        self.output: deque[str] = deque(maxlen=50)
        self._ready = threading.Event()
        self._began = time.perf_counter()
        self._process = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(variables),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self.output.append(line.rstrip("\n"))
            if not self._ready.is_set() and _says_ready(line):
                self.started_in = time.perf_counter() - self._began
                times = psutil.Process(self._process.pid).cpu_times()
                self.cpu = times.user + times.system
                self._ready.set()
        self._ready.set()

    def wait_until_ready(self) -> "AttuneProcess":
        if not self._ready.wait(_PATIENCE) or not self.started_in:
            raise ProcessFailed("attune did not become ready:\n" + "\n".join(self.output))
        return self

    def memory(self) -> tuple[float, float]:
        """Megabytes: what the process has in memory, and the share of all its processes, common pages divided."""
        main = psutil.Process(self._process.pid)
        everyone = [main, *main.children(recursive=True)]
        return main.memory_info().rss / 2**20, sum(map(_pss, everyone)) / 2**20

    def stop(self) -> None:
        """Gracefully, else by force. Safe to call twice."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_PATIENCE)
        if self._process.stdout is not None:
            self._process.stdout.close()


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This one, without settings of Attune that somebody has for himself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ATTUNE")}
    return {**kept, **variables}


def _says_ready(line: str) -> bool:
    if not line.startswith("{"):
        return False
    try:
        return bool(msgspec.json.decode(line)["event"] == _READY)
    except (msgspec.DecodeError, KeyError):
        return False


def _pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0
