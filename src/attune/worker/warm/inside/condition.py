"""What the system knows of a process that stays, beside what each run is given anew."""

# ruff: noqa: PTH208 - `pathlib` costs more than what it is used for here

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import locale
import os
import resource
import signal
import sys
from typing import Any

_SIGNALS = sorted(map(int, signal.valid_signals()))
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class Condition:
    """A run that leaves a thread, a child or a descriptor behind, or anything else changed, was the process's last."""

    def __init__(self, link: int) -> None:
        self._descriptors = {0, 1, 2, link}
        self._link = link
        self._first = self._look()

    def is_unchanged(self) -> bool:
        try:
            for stream in (sys.__stdout__, sys.__stderr__):
                stream.flush()  # type: ignore[union-attr]
            return self._is_alone() and self._look() == self._first
        except (OSError, ValueError):
            return False

    def _is_alone(self) -> bool:
        if len(os.listdir("/proc/self/task")) > 1:
            return False
        # The look itself has a descriptor.
        if len(os.listdir("/proc/self/fd")) != len(self._descriptors) + 1:
            return False
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def _look(self) -> tuple[Any, ...]:
        mask = os.umask(0o77)
        os.umask(mask)
        return (
            mask,
            [_place(descriptor) for descriptor in (1, 2, self._link)],
            [_signal.getsignal(number) for number in _SIGNALS],
            signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            signal.getitimer(signal.ITIMER_REAL),
            [resource.getrlimit(limit) for limit in _LIMITS],
            locale.setlocale(locale.LC_ALL),
            os.nice(0),
            os.sched_getaffinity(0),
            os.getresuid(),
            os.getresgid(),
            os.getpgrp(),
        )


def _place(descriptor: int) -> tuple[int, bool]:
    return os.fstat(descriptor).st_ino, os.get_blocking(descriptor)
