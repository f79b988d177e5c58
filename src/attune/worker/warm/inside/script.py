"""Runs a file as `python -u file` would: the same names, the same last words, the same end."""

# ruff: noqa: PTH123, PTH208 - `pathlib` costs more than what it is used for here

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NoReturn


def set_up(arguments: list[str], words: list[str]) -> ModuleType:
    """What a script finds of itself. Return its module, empty but for the names that every one begins with."""
    path = arguments[0]
    sys.argv = list(arguments)
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [*words, *arguments]
    sys.path.insert(0, _folder(path))
    main = ModuleType("__main__")
    main.__loader__ = SourceFileLoader("__main__", path)
    names: dict[str, Any] = {"__builtins__": builtins, "__file__": path, "__cached__": None}
    main.__dict__.update(names, __annotations__={})
    sys.modules["__main__"] = main
    return main


def heed(environment: dict[str, str]) -> None:
    """What only a start looks at."""
    if environment.get("PYTHONDONTWRITEBYTECODE"):
        sys.dont_write_bytecode = True


def source_of(path: str) -> bytes | None:
    """None for what is no source: an archive, or compiled."""
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError:
        return None
    return None if b"\0" in source else source


def shadowed(path: str, loaded: frozenset[str]) -> bool:
    """Whether a neighbour of the script has the name of a module that is loaded already and that it would replace."""
    folder = _folder(path)
    return any(entry.partition(".")[0] in loaded for entry in os.listdir(folder))


def _folder(path: str) -> str:
    """The path is that of the file itself, without links on the way."""
    return path.rpartition("/")[0] or "/"


def start_anew(words: list[str], arguments: list[str]) -> NoReturn:
    """In a fresh interpreter, under the same number and with the same descriptors."""
    os.execv(words[0], [*words, *arguments])  # noqa: S606 - what the script was to be run by


def compiled(source: bytes, path: str) -> CodeType:
    return compile(source, path, "exec", dont_inherit=True)


def run(source: bytes | CodeType, path: str, main: ModuleType) -> BaseException | None:
    """To its end: what it ended by, if it did not come to the last line."""
    try:
        code = compiled(source, path) if isinstance(source, bytes) else source
        exec(code, main.__dict__)  # noqa: S102 - the action itself
    except BaseException as error:  # noqa: BLE001 - whatever ends the script, exits included
        return error
    return None
