"""Which runtimes a worker has: found by looking for their programs."""

import shutil
from collections.abc import Iterable
from typing import Final

from attune.pipeline.workers.model import RuntimeSupport

_PROGRAMS: Final = {
    "native": (),
    "shell": ("bash",),
    "python": ("python3",),
    "nodejs": ("node",),
}


def supported_runtimes(path: str) -> list[RuntimeSupport]:
    """`path` is the worker's own, which its actions get as well."""
    return [RuntimeSupport(name) for name, needed in _PROGRAMS.items() if _all_there(needed, path)]


def _all_there(programs: Iterable[str], path: str) -> bool:
    return all(shutil.which(program, path=path) for program in programs)
