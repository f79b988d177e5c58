"""Finds the file and the interpreter of an action; nothing outside the pack's folder is ever run."""

import os
import shutil
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attune.worker.errors import CannotRun
from attune.worker.model import Action, Runtime

# Unbuffered, so that output is live and that of a process that is killed is not lost.
_USUAL: Final = MappingProxyType(
    {
        Runtime.SHELL: ("bash",),
        Runtime.PYTHON: ("python3", "-u"),
        Runtime.NODE: ("node",),
    }
)


_MOST_FOUND: Final = 1000
_found: dict[tuple[str, str], str] = {}


def entry_file(action: Action) -> Path:
    """The entrypoint under the pack's `actions/`, else under its root, with links resolved."""
    if action.pack_dir is None or not action.pack_dir.is_dir():
        raise CannotRun(f"The pack {action.pack_ref} has no folder on this worker.")
    pack = os.path.realpath(action.pack_dir)
    found = [_inside(pack, folder, action.entrypoint) for folder in (f"{pack}/actions", pack)]
    for file in found:
        if os.path.isfile(file):  # noqa: PTH113 - see below
            return Path(file)
    raise CannotRun(
        f"The entrypoint {action.entrypoint!r} of {action.ref} names no file of the pack {action.pack_ref}."
    )


def _inside(pack: str, folder: str, entrypoint: str) -> str:
    """Paths are plain text here: this is done for each run, and `pathlib` would take most of its time."""
    try:
        resolved = os.path.realpath(os.path.join(folder, entrypoint))  # noqa: PTH118 - see above
    except (OSError, ValueError):
        raise CannotRun("The entrypoint is not the name of a file.") from None
    if not f"{resolved}/".startswith(f"{pack}/"):
        raise CannotRun("The entrypoint leads out of the pack's folder.")
    return resolved


def interpreter(action: Action, path: str) -> tuple[str, ...]:
    """The start of the command line, its program looked up in the child's own PATH."""
    words = action.interpreter or _USUAL.get(action.runtime, ())
    if not words:
        raise CannotRun(f"Nothing is known to interpret {action.runtime} actions.")
    return (program(words[0], path), *words[1:])


def program(name: str, path: str) -> str:
    """Where it was found before it is looked for first: one that comes earlier in the PATH later on is not noticed."""
    found = _found.get((name, path))
    if found is not None and os.access(found, os.X_OK):
        return found
    found = shutil.which(name, path=path)
    if found is None:
        raise CannotRun(f"The interpreter {name!r} is not installed on this worker.")
    if len(_found) >= _MOST_FOUND:
        _found.clear()
    _found[name, path] = found
    return found
