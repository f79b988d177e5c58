"""An action's limits as the kernel enforces them, one process at a time."""

import math
import resource
import shutil
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from attune.catalog.retrying import Limits
from attune.worker.errors import CannotRun

_MEGABYTE: Final = 1024 * 1024
# What a limit can say; more is as good as none.
_MOST: Final = 2**62
_PROGRAM: Final = "prlimit"
_USUAL_PLACES: Final = "/usr/local/bin:/usr/bin:/bin"
_OPTIONS: Final = MappingProxyType(
    {
        resource.RLIMIT_CORE: "core",
        resource.RLIMIT_CPU: "cpu",
        resource.RLIMIT_DATA: "data",
        resource.RLIMIT_NOFILE: "nofile",
    }
)


def rlimits_of(limits: Limits) -> tuple[tuple[int, int, int], ...]:
    """(resource, soft, hard) for each limit that the kernel can hold; empty where there is none.

    CPU time counts in whole seconds: the soft limit ends a process with SIGXCPU, the hard one, a second later,
    one that ignores it. Memory is RLIMIT_DATA, what a process can write that is its own. RLIMIT_AS would count
    what is merely reserved too: node reserves 700 MB and uses 40, so it would not start where 512 MB are
    allowed. By RLIMIT_DATA bash and python start with 32 MB and node with 64; memory that processes share
    is not counted.
    """
    return tuple(_within(*each) for each in _wanted(limits))


def cpu_allowance(cpu_seconds: float) -> int:
    """The whole seconds that the kernel grants."""
    return math.ceil(min(cpu_seconds, _MOST))


def wrapped(arguments: tuple[str, ...], limits: Limits, path: str) -> tuple[str, ...]:
    """The command line that sets the limits on itself and then becomes the program: same process, same number.

    A program of its own does it, because code of ours between fork and exec is not safe in a process with threads.
    """
    rlimits = rlimits_of(limits)
    if not rlimits:
        return arguments
    found = shutil.which(_PROGRAM, path=path) or shutil.which(_PROGRAM, path=_USUAL_PLACES)
    if found is None:
        raise CannotRun(
            f"The action has limits, and {_PROGRAM!r} (of util-linux), which sets them, is not on this worker."
        )
    options = (f"--{_OPTIONS[which]}={soft}:{hard}" for which, soft, hard in rlimits)
    return (found, *options, "--", *arguments)


def _wanted(limits: Limits) -> Iterator[tuple[int, int, int]]:
    if limits.cpu_seconds is not None:
        seconds = cpu_allowance(limits.cpu_seconds)
        yield resource.RLIMIT_CPU, seconds, seconds + 1
        # SIGXCPU would leave an image of the process in the working folder.
        yield resource.RLIMIT_CORE, 0, 0
    if limits.memory_mb is not None:
        size = min(limits.memory_mb * _MEGABYTE, _MOST)
        yield resource.RLIMIT_DATA, size, size
    if limits.open_files is not None:
        yield resource.RLIMIT_NOFILE, limits.open_files, limits.open_files


def _within(which: int, soft: int, hard: int) -> tuple[int, int, int]:
    """A worker that is limited itself cannot grant more than it has."""
    own = resource.getrlimit(which)[1]
    if own == resource.RLIM_INFINITY:
        return which, soft, hard
    return which, min(soft, own), min(hard, own)
