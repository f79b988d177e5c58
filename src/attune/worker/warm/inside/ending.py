"""How a script's process ends: as the interpreter would end it, without taking apart what the script never touched.

The teardown of a whole interpreter writes to most of the memory that a fork shares with its parent, and costs more
than the fork and a short script together.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from itertools import takewhile
from types import ModuleType, TracebackType
from typing import Any


def end_by(error: BaseException | None, main: ModuleType, last_module: str) -> None:
    """End the process after a script. `last_module` is the youngest of those that were there before it.

    Whatever is unusual (threads, an interrupt, a hook for what was not caught, a stream that cannot be
    flushed) is raised for the interpreter itself to deal with.
    """
    threading: Any = sys.modules.get("threading")
    unusual = isinstance(error, KeyboardInterrupt) or sys.excepthook is not sys.__excepthook__
    if unusual or (threading is not None and threading.active_count() > 1):
        raise_out(error)
    code = last_words(error)
    error = None
    atexit._run_exitfuncs()
    _flush(code)
    _take_apart(main, last_module)
    _flush(code)
    os._exit(code)


def raise_out(error: BaseException | None) -> None:
    """To the interpreter, which ends by it."""
    if error is None:
        raise SystemExit(0)
    if not isinstance(error, SystemExit):
        _hide_our_frames()
    raise error


def last_words(error: BaseException | None) -> int:
    """Say what the interpreter would say of it. Its exit code."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return _exit_code(error.code)
    trace = _without_ours(error.__traceback__)
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    return 1


def _exit_code(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF
    sys.stdout.flush()
    sys.stderr.write(str(code) + "\n")
    return 1


def _flush(code: int) -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        raise SystemExit(code) from None


def _take_apart(main: ModuleType, last_module: str) -> None:
    """The script's own module and those that it brought along: what they hold writes its last and lets go."""
    names = list(takewhile(lambda name: name != last_module, reversed(sys.modules)))
    later = [sys.modules.pop(name) for name in names]
    empty(main, *later)


def empty(*modules: ModuleType) -> None:
    """Like the interpreter, with a look for circles before, too: it puts files before what they write through."""
    gc.collect()
    for module in modules:
        clear(module)
    gc.collect()


def clear(module: ModuleType) -> None:
    names = getattr(module, "__dict__", {})
    for name in [name for name in names if name != "__builtins__"]:
        names[name] = None


def _hide_our_frames() -> None:
    """From whatever shows the exception that is about to end the interpreter."""
    shows = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        own = _without_ours(trace)
        shows(kind, error.with_traceback(own), own)

    sys.excepthook = hook


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return trace


def _is_ours(trace: TracebackType) -> bool:
    names = trace.tb_frame.f_globals
    return "_attune_boot" in names or str(names.get("__name__")).startswith(__package__ or ".")
