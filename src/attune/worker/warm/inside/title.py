"""What /proc shows of a process: set by exec, so that a forked one has to write it itself."""
# ruff: noqa: PTH123 - `pathlib` costs more than what it is used for here

from __future__ import annotations

import os

_ARGUMENTS = 44
_ENVIRONMENT = 46


class Title:
    """The memory in which the system looks for a process's arguments and for the variables it was started with.

    A process that left its session and lost its parent is known by those variables alone; so a fork that is the
    first process of a run has to show the mark of its run there. `room` names a variable that is there for nothing
    else; it is removed from the environment that the interpreter knows.
    """

    def __init__(self, room: str) -> None:
        with open("/proc/self/stat", "rb") as file:
            # Behind the name, which may hold anything, and the state.
            fields = [int(field) for field in file.read().rpartition(b")")[2].split()[1:]]
        start, end = fields[_ARGUMENTS : _ARGUMENTS + 2]
        self._arguments = start, end - start
        self._variables = _place(room, fields[_ENVIRONMENT])
        os.environ.pop(room, None)

    def write(self, arguments: list[str], variables: dict[str, str]) -> None:
        """What has no room is left out."""
        shown = [name + "=" + value for name, value in variables.items()]
        try:
            memory = os.open("/proc/self/mem", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            _fill(memory, self._arguments, arguments)
            _fill(memory, self._variables, shown)
        except OSError:
            return
        finally:
            os.close(memory)


def _place(name: str, environment: int) -> tuple[int, int]:
    """Where the variable begins, and how long it is."""
    with open("/proc/self/environ", "rb") as file:
        shown = file.read()
    before, found, after = (b"\0" + shown).partition(b"\0" + name.encode() + b"=")
    if not found or not environment:
        return 0, 0
    return environment + len(before), len(name) + 1 + after.index(b"\0")


def _fill(memory: int, place: tuple[int, int], words: list[str]) -> None:
    start, room = place
    text = b"\0".join(os.fsencode(word) for word in words)[: max(room - 1, 0)]
    if room:
        os.pwrite(memory, text.ljust(room, b"\0"), start)
