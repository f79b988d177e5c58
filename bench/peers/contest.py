"""What a peer is asked to do, and the ledger in which its jobs note that they ran.

Runs on the peers' own interpreters, so it needs nothing but the standard library. A peer's module is run as a program
by the runner, and imported by the peer's own workers: both find the same contest, the first from its arguments, the
others from a variable that the first has set.
"""

import argparse
import dataclasses
import functools
import json
import os
import select
import struct
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

CASES = ("free", "limit10", "limit1", "latency")
VARIABLE = "BENCH_PEER_CONTEST"
MEMORY = Path("/dev/shm")  # noqa: S108 - only where there is such a folder, and in a folder of our own


@dataclasses.dataclass(frozen=True)
class Contest:
    """`scratch` is a folder on disk for files of the peer; `ledger` is where its jobs write."""

    case: str
    count: int
    servers: dict[str, str]
    variant: str
    scratch: str
    ledger: str

    @property
    def limit(self) -> int | None:
        """How many jobs may run at once, or None for as many as the peer likes."""
        return {"limit10": 10, "limit1": 1}.get(self.case)

    @classmethod
    def from_arguments(cls, arguments: list[str] | None = None) -> "Contest":
        parser = argparse.ArgumentParser()
        parser.add_argument("--case", choices=CASES, required=True)
        parser.add_argument("--count", type=_positive, required=True)
        parser.add_argument("--servers", type=_servers, required=True, help="URLs by name, as JSON")
        parser.add_argument("--variant", default="plain")
        given = parser.parse_args(arguments)
        scratch = tempfile.mkdtemp(prefix="attune-peer-")
        folder = tempfile.mkdtemp(prefix="attune-peer-", dir=MEMORY if MEMORY.is_dir() else scratch)
        return cls(**vars(given), scratch=scratch, ledger=str(Path(folder) / "ledger"))


@functools.cache
def contest() -> Contest:
    """The contest of this process: that of the process which started it, else that of its arguments."""
    known = os.environ.get(VARIABLE)
    if known:
        return Contest(**json.loads(known))
    made = Contest.from_arguments()
    os.environ[VARIABLE] = json.dumps(dataclasses.asdict(made))
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _servers(text: str) -> dict[str, str]:
    found: Any = json.loads(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("must be an object of URLs by name")
    return found


class Entry(NamedTuple):
    """One run of a job: its number, when it ran by the machine's monotonic clock, and in which process."""

    number: int
    at_ns: int
    pid: int


_ENTRY = struct.Struct("<qqq")


def note(number: int) -> int:
    """The work of every job: one write of 24 bytes to memory, which is how the runner knows that it ran.

    A write this small to a file opened for appending, or to a pipe, is never mixed with another one.
    """
    os.write(_descriptor(), _ENTRY.pack(number, time.monotonic_ns(), os.getpid()))
    return number


@functools.cache
def _descriptor() -> int:
    return os.open(contest().ledger, os.O_WRONLY | os.O_APPEND)


class Ledger:
    """The runner's end: a file where jobs are counted, a pipe where each is waited for without polling."""

    def __init__(self, path: str, *, pipe: bool) -> None:
        if pipe:
            os.mkfifo(path)
        else:
            Path(path).touch()
        # A pipe that is open for both never blocks the first writer and never ends.
        self._descriptor = os.open(path, os.O_RDWR if pipe else os.O_RDONLY)
        self._entries: list[Entry] = []

    def next(self, timeout: float) -> Entry | None:
        """Wait for the next entry of a pipe, but no longer than so many seconds."""
        if not select.select([self._descriptor], [], [], timeout)[0]:
            return None
        return Entry(*_ENTRY.unpack(os.read(self._descriptor, _ENTRY.size)))

    def entries(self) -> list[Entry]:
        """All entries of a file so far, in the order of writing."""
        size = os.fstat(self._descriptor).st_size
        known = len(self._entries) * _ENTRY.size
        if size - known >= _ENTRY.size:
            text = os.pread(self._descriptor, (size - known) // _ENTRY.size * _ENTRY.size, known)
            self._entries += [Entry(*fields) for fields in _ENTRY.iter_unpack(text)]
        return self._entries

    def __len__(self) -> int:
        return os.fstat(self._descriptor).st_size // _ENTRY.size

    def close(self) -> None:
        os.close(self._descriptor)
