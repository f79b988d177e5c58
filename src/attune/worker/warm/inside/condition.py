"""What the system knows of a process that stays, beside what each run is given anew."""

# ruff: noqa: PTH116, PTH208 - `pathlib` costs more than what it is used for here

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import locale
import os
import resource
import signal
import sys
from typing import Any

_THREADS = "/proc/self/task"
_DESCRIPTORS = "/proc/self/fd"
# A folder has a link for itself, one for its name, and one for each folder in it.
_ONE_THREAD = 3
_NEVER = (0.0, 0.0)
_SIGNALS = sorted(map(int, signal.valid_signals()))
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class Condition:
    """A run that leaves a thread, a child or a descriptor behind, or anything else changed, was the process's last."""

    def __init__(self, link: int) -> None:
        self._places = (1, 2, link)
        self._first_places = self._look_at_places()
        self._first = self._look()
        # Standard input beside those places. Not every kernel counts them.
        self._descriptors = len(self._places) + 1
        self._is_counted = os.stat(_DESCRIPTORS).st_size == self._descriptors

    def is_alone(self) -> bool:
        """No thread but this one, and no child: nobody else can change anything any more."""
        return os.stat(_THREADS).st_nlink == _ONE_THREAD and not _has_children()

    def is_whole(self) -> bool:
        """Whether the streams are as they were, and nothing is open beside them or set to happen."""
        try:
            for stream in (sys.__stdout__, sys.__stderr__):
                stream.flush()  # type: ignore[union-attr]
            return (
                self._count() == self._descriptors
                and signal.getitimer(signal.ITIMER_REAL) == _NEVER
                and self._look_at_places() == self._first_places
            )
        except (OSError, ValueError):
            return False

    def is_unchanged(self) -> bool:
        """Whether all else is as it was: a process of which it is not can end when the run is over."""
        return self._look() == self._first

    def _count(self) -> int:
        if self._is_counted:
            return os.stat(_DESCRIPTORS).st_size
        # The look itself has a descriptor.
        return len(os.listdir(_DESCRIPTORS)) - 1

    def _look_at_places(self) -> list[tuple[int, bool]]:
        return [_place(descriptor) for descriptor in self._places]

    def _look(self) -> tuple[Any, ...]:
        mask = os.umask(0o77)
        os.umask(mask)
        return (
            mask,
            [_signal.getsignal(number) for number in _SIGNALS],
            signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            [resource.getrlimit(limit) for limit in _LIMITS],
            locale.setlocale(locale.LC_ALL),
            os.nice(0),
            os.sched_getaffinity(0),
            os.getresuid(),
            os.getresgid(),
            os.getpgrp(),
        )


def _has_children() -> bool:
    """Also those that have ended, and orphans of theirs, which become children of this process."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _place(descriptor: int) -> tuple[int, bool]:
    return os.fstat(descriptor).st_ino, os.get_blocking(descriptor)
