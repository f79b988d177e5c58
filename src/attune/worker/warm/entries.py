"""Where the scripts of actions are, found once and only looked at again: to find one costs more than to run it."""

import os
from typing import Final

from attune.worker.entry import entry_file
from attune.worker.model import Action

_MOST: Final = 1000

_Identity = tuple[int, int]


class Entries:
    """An entry holds as long as its name leads to the same file, whatever links are on the way."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[_Identity, str]] = {}

    def find(self, action: Action) -> str:
        """Raise CannotRun as `entry_file` does."""
        key = str(action.pack_dir), action.entrypoint
        identity = _identity("/actions/".join(key))
        known, file = self._found.get(key, (None, ""))
        if identity is None or known != identity:
            file = str(entry_file(action))
            if identity is not None and identity == _identity(file):
                self._keep(key, identity, file)
        return file

    def _keep(self, key: tuple[str, str], identity: _Identity, file: str) -> None:
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[key] = identity, file


def _identity(file: str) -> _Identity | None:
    try:
        stat = os.stat(file)  # noqa: PTH116 - looked at before each run
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino
