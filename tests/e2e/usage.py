"""What a process uses of its machine, by the kernel's word."""

from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """`files` are open descriptors; `megabytes` are resident."""

    files: int
    megabytes: float


def usage(pid: int) -> Usage:
    place = Path("/proc", str(pid))
    resident = next(
        line.split()[1] for line in (place / "status").read_text().splitlines() if "VmRSS" in line
    )
    return Usage(sum(1 for _ in (place / "fd").iterdir()), int(resident) / 1024)


def processes_of(execution: int) -> list[str]:
    """Processes of an execution, by the variable that each of them has."""
    mark = f"ATTUNE_EXEC_ID={execution}".encode()
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in place.read_bytes().split(b"\0"):
                found.append(place.parent.name)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found
