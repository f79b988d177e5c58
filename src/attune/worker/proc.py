"""What /proc says about processes. Nothing but the standard library: the guardian's process reads it too."""

import os
from contextlib import suppress
from typing import Final, NamedTuple

# A process may end between two looks at it; of one of another user not everything can be read.
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_CHUNK: Final = 64 * 1024
# The kernel hands out lists by the page, whole entries only: after less than this there is no more.
_LAST_PIECE: Final = 2048
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Identity(NamedTuple):
    """`started` (in ticks since boot) tells one process from a later one with the same number."""

    pid: int
    started: int


class Process(NamedTuple):
    identity: Identity
    state: str
    group: int
    session: int
    parent: int = 0
    threads: int = 1

    @property
    def pid(self) -> int:
        return self.identity.pid

    @property
    def lives(self) -> bool:
        """Also if its first thread has ended, which then looks like the body of the whole."""
        return self.state not in "ZX" or self.threads > 1

    @property
    def stopped(self) -> bool:
        return self.state in "Tt"


def look(pid: int) -> Process | None:
    fields = _stat(pid)
    if fields is None:
        return None
    return Process(
        identity=Identity(pid, int(fields[19])),
        state=fields[0].decode(),
        group=int(fields[2]),
        session=int(fields[3]),
        parent=int(fields[1]),
        threads=int(fields[17]),
    )


def myself() -> Identity:
    process = look(os.getpid())
    if process is None:
        raise ProcessLookupError("/proc does not show this process")
    return process.identity


def same(identity: Identity) -> bool:
    """Whether the number still is that process's."""
    process = look(identity.pid)
    return process is not None and process.identity == identity


def cpu_seconds(pid: int) -> float | None:
    """What it used itself, in all its threads; its body tells, too."""
    fields = _stat(pid)
    return None if fields is None else (int(fields[11]) + int(fields[12])) / _TICKS


def children(pid: int) -> set[int]:
    """Those that any of its threads started or took in; a look may miss one while others end."""
    found: set[int] = set()
    with suppress(*_GONE), os.scandir(f"/proc/{pid}/task") as threads:
        for thread in threads:
            found.update(_children_of_thread(pid, thread.name))
    return found


def adopted(pid: int) -> set[int]:
    """Its first thread's children: it is this one that takes in orphans, for as long as it lives."""
    return _children_of_thread(pid, str(pid))


def has_variable(pid: int, assignment: bytes) -> bool:
    """Whether the process was started with this NAME=value; one that has ended shows none."""
    return assignment in (_read(f"/proc/{pid}/environ") or b"").split(b"\0")


def has_memory(pid: int) -> bool:
    """Not of one that has ended or is about to: it loses its memory before its descriptors."""
    return (_read(f"/proc/{pid}/statm") or b"0").split()[0] != b"0"


def all_pids() -> list[int]:
    with os.scandir("/proc") as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def limits_of(pid: int, name: bytes) -> tuple[int | None, int | None]:
    """The soft and the hard limit that /proc calls by this name; None for no limit, or if nobody can tell."""
    for line in (_read(f"/proc/{pid}/limits") or b"").splitlines():
        if line.startswith(name):
            soft, hard = line[len(name) :].split()[:2]
            return _number(soft), _number(hard)
    return None, None


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


def _stat(pid: int) -> list[bytes] | None:
    """The fields from the third on, which is the state."""
    stat = _read(f"/proc/{pid}/stat")
    # The name before the last parenthesis is the process's own choice and may hold anything.
    return stat[stat.rindex(b")") + 2 :].split() if stat else None


def _children_of_thread(pid: int, thread: str) -> set[int]:
    return set(map(int, (_read(f"/proc/{pid}/task/{thread}/children") or b"").split()))


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except _GONE:
        return None
    try:
        pieces = []
        while piece := os.read(descriptor, _CHUNK):
            pieces.append(piece)
            if len(piece) < _LAST_PIECE:
                break
        return b"".join(pieces)
    except _GONE:
        return None
    finally:
        os.close(descriptor)
