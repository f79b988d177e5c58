"""An SQLite file belongs to one process: the lock file beside it says to whom."""

import fcntl
import os
from pathlib import Path

from attune.kernel.errors import DatabaseInUse, DatabaseUnavailable


class Ownership:
    """A lock that the kernel takes back when the process ends, however it ends."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._descriptor: int | None = None

    def take(self) -> None:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DatabaseUnavailable(
                f"The data directory {self._path.parent} cannot be used: {error.strerror}."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode().strip() or "unknown"
            os.close(descriptor)
            raise DatabaseInUse(
                f"The SQLite database in {self._path.parent} is in use by process {owner}."
                " One process owns it at a time: stop that one, choose another data directory,"
                " or use PostgreSQL (database.url) to run several.",
                owner=owner,
            ) from None
        os.truncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
