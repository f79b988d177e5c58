"""Two things that only the system's own library can ask for; an interpreter without `ctypes` does without."""

from __future__ import annotations

import signal

_SET_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> bool:
    try:
        import ctypes  # noqa: PLC0415 - not every interpreter has it
    except ImportError:
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def end_with_parent() -> bool:
    """Also when this process is stopped or stuck at that time."""
    return _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def take_in_orphans() -> bool:
    """What the processes below leave behind becomes a child of this one."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)
