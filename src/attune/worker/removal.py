"""Takes away what a run left in its private folder, whatever that is."""

import asyncio
import os
from contextlib import suppress
from itertools import count
from pathlib import Path

import structlog

_log = structlog.get_logger()


async def remove(folder: Path) -> None:
    """What most runs leave, a file or two and empty folders, is gone before a thread could have begun."""
    if not _is_little(folder):
        await asyncio.to_thread(_remove, folder)


def _is_little(folder: Path) -> bool:
    """Whether it was, and is gone."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    Path(entry.path).rmdir()
                else:
                    Path(entry.path).unlink()
        folder.rmdir()
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    try:
        remove_tree(folder)
    except OSError as error:
        _log.warning(
            "A run's folder could not be removed.", folder=str(folder), reason=error.strerror
        )


def remove_tree(top: Path) -> None:
    """Also of folders that may not be read or written, and of any depth.

    Each folder is moved to the top before it is emptied, so that neither the stack nor the length of a path bounds
    how deep they may be. Links are removed, never followed.
    """
    names = (top / f".{number}" for number in count())
    pending = [top]
    while pending:
        folder = pending[-1]
        folder.chmod(0o700)
        inner = _without_files(folder)
        if not inner:
            folder.rmdir()
            pending.pop()
        elif folder == top:
            pending.extend(inner)
        else:
            for each in inner:
                each.chmod(0o700)
                pending.append(each.rename(next(name for name in names if not name.exists())))


def _without_files(folder: Path) -> list[Path]:
    """The folders in it, when all else in it is gone."""
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(Path(entry.path))
            else:
                with suppress(FileNotFoundError):
                    Path(entry.path).unlink()
    return inner
