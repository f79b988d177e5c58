"""Which interpreter a command asks for, and whether a warm one may stand in for a fresh one."""

import os
import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

# What an interpreter heeds at its start and never looks at again.
_AT_START: Final = re.compile(r"PATH|HOME|LANG|LANGUAGE|TZ|LC_.*")
# What the loader, the memory's allocator or the interpreter read before anything of ours could set it.
_BEFORE_START: Final = re.compile(r"(PYTHON|LD_|MALLOC_|GLIBC_).*")
_HARMLESS: Final = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"})
_OURS: Final = re.compile(r"ATTUNE_.*|TMPDIR")
_UNBUFFERED: Final = "-u"
_MOST: Final = 1000


class _Heeded(Enum):
    """`perhaps` is for what only a wrapper around the interpreter could heed."""

    BEFORE_START = "before start"
    AT_START = "at start"
    LATER = "later"
    PERHAPS = "perhaps"


class Kind(msgspec.Struct, frozen=True):
    """Commands of one kind can be forked from one interpreter. `folder` is where it starts."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    folder: str


def kind_of(words: tuple[str, ...], environment: Mapping[str, str], folder: str) -> Kind | None:
    """None for what needs a start of its own. `words` are those before the script's name.

    A program that is itself a script (a version switcher, a wrapper) may heed any variable and the folder it is
    called in.
    """
    program, *options = words or ("",)
    if options not in ([], [_UNBUFFERED]):
        return None
    if not options and "PYTHONUNBUFFERED" in environment:
        return None
    wraps = _is_script(program)
    at_start = []
    for name, value in environment.items():
        match _heeded(name):
            case _Heeded.BEFORE_START:
                return None
            case _Heeded.PERHAPS if wraps:
                return None
            case _Heeded.AT_START:
                at_start.append((name, value))
    return Kind(words=words, environment=tuple(at_start), folder=folder if wraps else "/")


class Kinds:
    """`kind_of` for runs of one worker, whose environments differ in nothing but what an execution brings and what
    nobody heeds at a start."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], str, bool], Kind | None] = {}

    def get(
        self, words: tuple[str, ...], environment: Mapping[str, str], folder: str, *, brings: bool
    ) -> Kind | None:
        """`brings` if the execution has variables of its own: these are nowhere kept."""
        if brings:
            return kind_of(words, environment, folder)
        key = words, folder, _is_script(words[0])
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = kind_of(words, environment, folder)
        return self._known[key]


def _is_script(program: str) -> bool:
    try:
        return _starts_as_script(program, os.stat(program).st_mtime_ns)  # noqa: PTH116 - for each run
    except OSError:
        return True


@lru_cache(maxsize=64)
def _starts_as_script(program: str, _changed: int) -> bool:
    with Path(program).open("rb") as file:
        return file.read(2) == b"#!"


@lru_cache(maxsize=4096)
def _heeded(name: str) -> _Heeded:
    """When a variable is looked at, by its name."""
    if name in _HARMLESS or _OURS.fullmatch(name):
        return _Heeded.LATER
    if _AT_START.fullmatch(name):
        return _Heeded.AT_START
    return _Heeded.BEFORE_START if _BEFORE_START.fullmatch(name) else _Heeded.PERHAPS
