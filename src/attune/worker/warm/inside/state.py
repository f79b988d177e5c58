"""What the runs of a process that stays share inside the interpreter: put back before each."""

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


class State:
    """As the first run found it. Modules that a run imported stay, with what they hold: that is what reuse means."""

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._hooks = list(sys.meta_path), list(sys.path_hooks)
        self._limit = sys.getrecursionlimit()
        self._filters = list(warnings.filters)
        self._builtins = dict(vars(builtins))
        self._encoding = sys.stdin.encoding, sys.stdin.errors
        self._no_bytecode = sys.dont_write_bytecode
        self._works_at_exit = False
        self._put: set[bytes] = set()
        self._putenv = os.putenv
        os.putenv = self._note_variable
        self._register = atexit.register
        atexit.register = self._note_work_at_exit  # type: ignore[assignment]

    def has_work_at_exit(self) -> bool:
        """Whether the script itself asked for something to be done at the end of its process."""
        return self._works_at_exit

    def reset(self) -> None:
        self._reset_variables()
        sys.path[:] = self._path
        sys.meta_path[:], sys.path_hooks[:] = self._hooks
        sys.setrecursionlimit(self._limit)
        sys.dont_write_bytecode = self._no_bytecode
        sys.excepthook, sys.displayhook = sys.__excepthook__, sys.__displayhook__
        sys.settrace(None)
        sys.setprofile(None)
        self._reset_streams()
        self._reset_libraries()
        gc.enable()
        time.tzset()

    def _reset_variables(self) -> None:
        """Those that a run has set behind the back of `os.environ`."""
        for name in self._put - set(os.environb):
            os.unsetenv(name)
        self._put.clear()

    def _reset_streams(self) -> None:
        """Standard input is read ahead; the other two hold nothing back."""
        encoding, errors = self._encoding
        raw = io.FileIO(0, closefd=False)
        raw.name = "<stdin>"
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(raw), encoding, errors)  # type: ignore[misc]
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__

    def _reset_libraries(self) -> None:
        if warnings.filters != self._filters:
            warnings.resetwarnings()
            warnings.filters[:] = self._filters  # type: ignore[index]
        if vars(builtins) != self._builtins:
            _put_back(vars(builtins), self._builtins)
        socket.setdefaulttimeout(None)
        random: Any = sys.modules.get("random")
        if random is not None:
            random.seed()
        logging: Any = sys.modules.get("logging")
        if logging is not None:
            logging.root.handlers.clear()
            logging.root.setLevel(logging.WARNING)

    def _note_variable(self, name: Any, value: Any) -> None:
        self._putenv(name, value)
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
