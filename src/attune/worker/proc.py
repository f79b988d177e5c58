"""What /proc says about processes."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# A process may end between two looks at it; of one of another user not everything can be read.
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Identity(NamedTuple):
    """`started` (in ticks since boot) tells one process from a later one with the same number."""

    pid: int
    started: int


class Process(NamedTuple):
    identity: Identity
    state: str
    group: int
    session: int

    @property
    def pid(self) -> int:
        return self.identity.pid

    @property
    def lives(self) -> bool:
        return self.state not in "ZX"

    @property
    def stopped(self) -> bool:
        return self.state in "Tt"


def look(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except _GONE:
        return None
    # The name before the last parenthesis is the process's own choice and may hold anything.
    fields = stat[stat.rindex(b")") + 2 :].split()
    identity = Identity(pid, int(fields[19]))
    return Process(identity, fields[0].decode(), int(fields[2]), int(fields[3]))


def children(pid: int) -> set[int]:
    """Those that any of its threads started or took in; a look may miss one while others end."""
    found: set[int] = set()
    with suppress(*_GONE):
        for thread in list(Path(f"/proc/{pid}/task").iterdir()):
            with suppress(*_GONE):
                found.update(map(int, (thread / "children").read_bytes().split()))
    return found


def has_variable(pid: int, assignment: bytes) -> bool:
    """Whether the process was started with this NAME=value; one that has ended shows none."""
    try:
        return assignment in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except _GONE:
        return False
