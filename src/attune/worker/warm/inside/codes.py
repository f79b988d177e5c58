"""Scripts that were compiled before they were asked for again: a fork finds them in the memory it begins with."""
# ruff: noqa: PTH116 - `pathlib` costs more than what it is used for here

from __future__ import annotations

import os
import warnings
from types import CodeType

from attune.worker.warm.inside import script

_MOST = 64
_LARGEST = 256 * 1024


class Codes:
    def __init__(self) -> None:
        self._codes: dict[str, tuple[tuple[int, ...], CodeType | None]] = {}

    def get(self, path: str) -> CodeType | None:
        """None for what the process that runs it has to compile, because it alone can say what is wrong with it."""
        try:
            stat = os.stat(path)
        except OSError:
            return None
        state = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known, code = self._codes.pop(path, ((), None))
        if known != state:
            code = _compiled(path) if stat.st_size <= _LARGEST else None
        self._codes[path] = state, code
        if len(self._codes) > _MOST:
            del self._codes[next(iter(self._codes))]
        return code


def _compiled(path: str) -> CodeType | None:
    source = script.source_of(path)
    if source is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return script.compiled(source, path)
    except (SyntaxError, ValueError, Warning, RecursionError, MemoryError, OverflowError):
        return None
