"""Which limit of its own a failed action ran into, as a sentence: it names the limit, what is allowed and what was used."""

import re
import signal
from typing import Final

from attune.catalog.retrying import Limits
from attune.worker.rlimits import cpu_allowance

_SIGNALLED: Final = 128
_OUT_OF_CPU: Final = _SIGNALLED + signal.SIGXCPU
_KILLED: Final = _SIGNALLED + signal.SIGKILL
# How bash, python, node and the C library say that there is no more.
_NO_MEMORY: Final = re.compile(
    r"MemoryError|bad_alloc|ENOMEM|\bOOM\b|(cannot|unable to|failed to) (allocate|reserve|map)|out of memory|"
    r"failed to map segment",
    re.IGNORECASE,
)
_NO_DESCRIPTOR: Final = re.compile(r"too many open files|EMFILE", re.IGNORECASE)
# By these a program ends that does not ask whether it was given memory.
_CRASHES: Final = frozenset(
    _SIGNALLED + number
    for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP)
)


def breach(limits: Limits, exit_code: int | None, stderr: str, cpu: float | None) -> str | None:
    """None where no limit is recognised. `cpu` is what the first process used itself, in seconds."""
    return (
        _cpu(limits, exit_code, cpu)
        or _memory(limits, exit_code, stderr)
        or _open_files(limits, stderr)
    )


def crowded(most: int, count: int) -> str:
    return (
        f"The action was ended for its limit of {most} processes at once (limits.processes): "
        f"there were {count}."
    )


def _cpu(limits: Limits, exit_code: int | None, cpu: float | None) -> str | None:
    """One that ignores SIGXCPU is killed, and so are others; that the time was used up tells them apart.

    The kernel counts by ticks where it limits, and by the clock where it tells: on a busy machine that is less.
    """
    if limits.cpu_seconds is None:
        return None
    allowed = cpu_allowance(limits.cpu_seconds)
    itself = cpu is not None and cpu >= allowed / 2
    if exit_code != _OUT_OF_CPU and not (exit_code == _KILLED and itself):
        return None
    used = (
        f"it used {max(cpu or 0, allowed):.1f} s" if itself else "one that it started used them up"
    )
    return (
        f"The action was ended for its limit of {allowed} s of CPU time for each process "
        f"(limits.cpu_seconds): {used}."
    )


def _memory(limits: Limits, exit_code: int | None, stderr: str) -> str | None:
    allowed = f"{limits.memory_mb} MB of memory for each process (limits.memory_mb)"
    if limits.memory_mb is None:
        return None
    if _NO_MEMORY.search(stderr):
        return f"The action has a limit of {allowed} and asked for more."
    if exit_code in _CRASHES:
        return f"The action has a limit of {allowed}; it may have needed more."
    return None


def _open_files(limits: Limits, stderr: str) -> str | None:
    if limits.open_files is None or not _NO_DESCRIPTOR.search(stderr):
        return None
    return (
        f"The action has a limit of {limits.open_files} open files for each process "
        "(limits.open_files) and asked for more."
    )
