"""Private folders and inline scripts, made once for many runs: making and removing them waits for the disk."""

import os
import stat
import tempfile
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from attune.worker.delivery import private_file
from attune.worker.removal import remove

SCRATCH: Final = "tmp"
_MOST_FREE: Final = 64
_MOST_SCRIPTS: Final = 1000


class Folders:
    """A folder that a run leaves as it found it serves the next one; any other goes, with all that is in it."""

    def __init__(self) -> None:
        self._free: dict[Path, list[Path]] = defaultdict(list)

    @asynccontextmanager
    async def private(self, work_dir: Path) -> AsyncIterator[Path]:
        """Readable by its owner alone, with an empty place for temporary files, and nobody else's meanwhile."""
        free = self._free[work_dir]
        folder = free.pop() if free else None
        if folder is None or not _is_untouched(folder):
            folder = _made(work_dir)
        try:
            yield folder
        finally:
            if len(free) < _MOST_FREE and _is_untouched(folder):
                free.append(folder)
            else:
                await remove(folder)

    async def close(self) -> None:
        """Twice is safe."""
        while self._free:
            _, folders = self._free.popitem()
            for folder in folders:
                await remove(folder)


def make_folder(folder: Path) -> None:
    """One that most often is there. A path is plain text here: this is done for each run."""
    if not os.path.isdir(folder):  # noqa: PTH112 - see above
        folder.mkdir(parents=True, exist_ok=True)


def _made(work_dir: Path) -> Path:
    folder = _new_folder(work_dir, "run-")
    (folder / SCRATCH).mkdir(mode=0o700)
    return folder


def _new_folder(work_dir: Path, prefix: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=work_dir))
    except FileNotFoundError:
        work_dir.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=work_dir))


def _is_untouched(folder: Path) -> bool:
    """Whether it is as it was made. Paths are plain text here: this is done for each run."""
    path = str(folder)
    scratch = f"{path}/{SCRATCH}"
    try:
        return (
            os.listdir(path) == [SCRATCH]  # noqa: PTH208 - see above
            and os.listdir(scratch) == []  # noqa: PTH208
            and _is_private(path)
            and _is_private(scratch)
        )
    except OSError:
        return False


def _is_private(path: str) -> bool:
    mode = os.lstat(path).st_mode
    return stat.S_ISDIR(mode) and stat.S_IMODE(mode) == stat.S_IRWXU


class _Script(NamedTuple):
    """What changes with any change of a file: nobody can set the time of its last change."""

    file: Path
    number: int
    changed: int

    @classmethod
    def of(cls, file: Path) -> "_Script":
        found = os.stat(file)  # noqa: PTH116 - for each run
        return cls(file, found.st_ino, found.st_ctime_ns)

    @property
    def is_unchanged(self) -> bool:
        try:
            return _Script.of(self.file) == self
        except OSError:
            return False


class Scripts:
    """Inline scripts as files, each written once and trusted for as long as nobody has touched it."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Path, str, str], _Script] = OrderedDict()

    def file(self, work_dir: Path, name: str, text: str) -> Path:
        """A file of that name with that text, readable by its owner alone."""
        key = (work_dir, name, text)
        script = self._known.get(key)
        if script is None or not script.is_unchanged:
            folder = _new_folder(work_dir, "script-")
            script = _Script.of(private_file(folder / name, text.encode()))
            self._known[key] = script
        self._known.move_to_end(key)
        return script.file

    async def tidy(self, most: int = _MOST_SCRIPTS) -> None:
        """Those that were used the longest ago go first."""
        while len(self._known) > most:
            _, script = self._known.popitem(last=False)
            await remove(script.file.parent)
