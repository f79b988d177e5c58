"""A pack's folder on disk: nothing but plain files within bounds, and no way out of it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from attune.catalog.sources.documents import MAX_BYTES
from attune.catalog.sources.faults import Fault, refusal
from attune.catalog.sources.model import PackSource
from attune.catalog.sources.parsing import is_definition, parse_pack
from attune.kernel.errors import InvalidInput

MAX_FILES: Final = 10_000
MAX_FILE_BYTES: Final = 50_000_000
MAX_TOTAL_BYTES: Final = 500_000_000
MAX_DEPTH: Final = 30
LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", "__pycache__"})


class PackFile(msgspec.Struct, frozen=True):
    """A file by its path below the pack's folder, with `/` between the steps."""

    path: str
    size: int
    executable: bool


def read_pack(folder: Path) -> PackSource:
    """The pack in a folder, or `InvalidInput` with every fault."""
    files = files_in(folder)
    texts = {file.path: _head_of(folder / file.path) for file in files if is_definition(file.path)}
    return parse_pack(texts, frozenset(file.path for file in files))


def files_in(folder: Path) -> list[PackFile]:
    """Every file, sorted by path. Links, devices and whatever else is no plain file are refused."""
    found: list[PackFile] = []
    total = 0
    try:
        for file in _walk(folder, "", 1):
            found.append(file)
            total += file.size
            check_bounds(file, len(found), total)
    except OSError as error:
        raise InvalidInput(f"{folder}: {error.strerror}", field="path") from error
    return sorted(found, key=lambda file: file.path)


def check_bounds(file: PackFile, count: int, total: int) -> None:
    if count > MAX_FILES:
        raise refused("", f"the pack has more than {MAX_FILES} files")
    if file.size > MAX_FILE_BYTES:
        raise refused(file.path, f"the file is larger than {MAX_FILE_BYTES} bytes")
    if total > MAX_TOTAL_BYTES:
        raise refused("", f"the pack has more than {MAX_TOTAL_BYTES} bytes")


def refused(path: str, rule: str) -> InvalidInput:
    return refusal([Fault(path, "", rule)])


def _walk(folder: Path, below: str, depth: int) -> Iterator[PackFile]:
    if depth > MAX_DEPTH:
        raise refused(below, f"folders are nested more than {MAX_DEPTH} deep")
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            mode = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(mode.st_mode):
                if entry.name not in LEFT_OUT:
                    yield from _walk(folder / entry.name, f"{path}/", depth + 1)
            elif stat.S_ISREG(mode.st_mode):
                _check_name(path)
                yield PackFile(path, mode.st_size, bool(mode.st_mode & stat.S_IXUSR))
            else:
                raise refused(_shown_path(path), "links and devices are refused")


def _check_name(path: str) -> None:
    """A name that is no text could be neither stored nor shown."""
    if path != _shown_path(path) or "\\" in path:
        raise refused(_shown_path(path), "the file's name has characters that are refused")


def _shown_path(path: str) -> str:
    return path.encode(errors="replace").decode()


def _head_of(path: Path) -> bytes:
    """Enough to read it or to see that it is too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES + 1)
