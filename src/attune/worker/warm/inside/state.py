"""What the runs of a process that stays share inside the interpreter: put back after each."""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import socket
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

_CHANCE = 128


class State:
    """As the first run found it. Modules that a run imported stay, with what they hold: that is what reuse means."""

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._hooks = list(sys.meta_path), list(sys.path_hooks)
        self._limit = sys.getrecursionlimit()
        self._filters = list(warnings.filters)
        self._builtins = dict(vars(builtins))
        self._encoding = sys.stdin.encoding, sys.stdin.errors
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._no_bytecode = sys.dont_write_bytecode
        self._works_at_exit = False
        self._environ = os.environ
        self._zone: bytes | None = os.environb.get(b"TZ")
        self._put: set[bytes] = set()
        self._putenv, self._unsetenv = os.putenv, os.unsetenv
        os.putenv, os.unsetenv = self._note_variable, self._note_no_variable
        self._register = atexit.register
        atexit.register = self._note_work_at_exit  # type: ignore[assignment]

    def has_work_at_exit(self) -> bool:
        """Whether the script itself asked for something to be done at the end of its process."""
        return self._works_at_exit

    def reset(self) -> None:
        """All that may hold something of the run: the last words of what it lets go of are still the run's."""
        self._reset_streams()
        sys.path[:] = self._path
        sys.meta_path[:], sys.path_hooks[:] = self._hooks
        sys.setrecursionlimit(self._limit)
        sys.dont_write_bytecode = self._no_bytecode
        sys.excepthook, sys.displayhook = sys.__excepthook__, sys.__displayhook__
        sys.settrace(None)
        sys.setprofile(None)
        self._reset_libraries()
        self._reset_variables()
        gc.enable()

    def renew(self) -> None:
        """What each run has anew. The zone is the same for all."""
        self._reset_zone()
        time.tzset()
        random: Any = sys.modules.get("random")
        if random is not None:
            # By itself it would ask for twenty times as much chance, and take three times as long.
            random.seed(int.from_bytes(os.urandom(_CHANCE), "little"))
        self._renew_input(os.memfd_create("attune", os.MFD_CLOEXEC))

    def give_input(self, content: bytes) -> None:
        """To the file that `renew` made: never on a disk, with an end, and gone with its last reader."""
        os.write(0, content)
        os.lseek(0, 0, os.SEEK_SET)

    def give_input_from(self, descriptor: int) -> None:
        self._renew_input(descriptor)

    def _renew_input(self, descriptor: int) -> None:
        """Standard input is read ahead; the other two hold nothing back."""
        os.dup2(descriptor, 0)
        os.close(descriptor)
        encoding, errors = self._encoding
        raw = io.FileIO(0, closefd=False)
        raw.name = "<stdin>"
        stdin = io.TextIOWrapper(io.BufferedReader(raw), encoding, errors)
        sys.stdin = sys.__stdin__ = stdin  # type: ignore[misc]
        self._streams = stdin, *self._streams[1:]

    def _reset_streams(self) -> None:
        """A stream of the script's own may hold something back, whoever else has it."""
        for stream in (sys.stdout, sys.stderr):
            if stream not in self._streams and stream is not None:
                stream.flush()
        sys.stdin, sys.stdout, sys.stderr = self._streams
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc,assignment]

    def _reset_variables(self) -> None:
        """Also those that a run has set behind the back of `os.environ`."""
        os.environ = self._environ  # noqa: B003 - the one there always was
        os.putenv, os.unsetenv = self._note_variable, self._note_no_variable
        known: dict[bytes, bytes] = self._environ._data  # type: ignore[attr-defined]
        for name in self._put:
            if name in known:
                self._putenv(name, known[name])
            else:
                self._unsetenv(name)
        self._put.clear()

    def _reset_zone(self) -> None:
        if self._environ._data.get(b"TZ") == self._zone:  # type: ignore[attr-defined]
            return
        if self._zone is None:
            del os.environb[b"TZ"]
        else:
            os.environb[b"TZ"] = self._zone

    def _reset_libraries(self) -> None:
        if warnings.filters != self._filters:
            warnings.resetwarnings()
            warnings.filters[:] = self._filters  # type: ignore[index]
        if vars(builtins) != self._builtins:
            _put_back(vars(builtins), self._builtins)
        socket.setdefaulttimeout(None)
        logging: Any = sys.modules.get("logging")
        if logging is not None:
            logging.root.handlers.clear()
            logging.root.setLevel(logging.WARNING)

    def _note_variable(self, name: Any, value: Any) -> None:
        self._putenv(name, value)
        self._put.add(os.fsencode(name))

    def _note_no_variable(self, name: Any) -> None:
        self._unsetenv(name)
        self._put.add(os.fsencode(name))

    def _note_work_at_exit(
        self, work: Callable[..., Any], *positional: Any, **named: Any
    ) -> Callable[..., Any]:
        if sys._getframe(1).f_globals.get("__name__") == "__main__":
            self._works_at_exit = True
        return self._register(work, *positional, **named)


def _put_back(names: dict[str, Any], first: dict[str, Any]) -> None:
    for name in set(names) - set(first):
        del names[name]
    names.update(first)
