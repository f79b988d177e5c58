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
