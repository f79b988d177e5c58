"""Where packs' files live: `<root>/<pack ref>/<digest of content>/`.

A version is written beside, then moved into place in one rename and never changed again, so an execution
that was requested with it finds the same bytes however often the pack is updated. One installer works at
a time, on this host or on another that shares the root; what it finds in the staging folder was left by one
that died.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final

from attune.catalog.archives import unpack
from attune.catalog.sources.folder import PackFile, files_in
from attune.kernel.clock import Clock

_STAGING: Final = ".staging"
_LOCK: Final = ".lock"
_LOCK_INTERVAL: Final = 0.05
_CHUNK: Final = 1024 * 1024


class PackFiles:
    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock

    def path_of(self, pack_dir: str) -> Path:
        """The folder that a row's `pack_dir` names, on this host."""
        return self._root / pack_dir

    @asynccontextmanager
    async def staging(self) -> AsyncIterator[Path]:
        """An empty folder for one installation, gone afterwards. Others wait until it is done."""
        async with self._alone():
            staging = self._root / _STAGING
            await asyncio.to_thread(_emptied, staging)
            try:
                yield Path(tempfile.mkdtemp(dir=staging))
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def stage_archive(self, archive: BinaryIO, staging: Path) -> Path:
        return unpack(archive, staging)

    def stage_folder(self, folder: Path, staging: Path) -> Path:
        """A copy, so that what is read is what is kept, even while the folder changes."""
        for file in files_in(folder):
            _copy(folder / file.path, staging / file.path, file)
        return staging

    def keep(self, staged: Path, pack_ref: str) -> tuple[str, bool]:
        """Move a staged pack to its place: its `pack_dir`, and whether it is new there."""
        pack_dir = f"{pack_ref}/{digest_of(staged)}"
        target = self.path_of(pack_dir)
        if target.exists():
            return pack_dir, False
        target.parent.mkdir(exist_ok=True)
        _flush(staged)
        staged.rename(target)
        _flush_folder(target.parent)
        return pack_dir, True

    def remove(self, pack_dir: str) -> None:
        """Take a version away, and the pack's folder with the last one."""
        target = self.path_of(pack_dir)
        shutil.rmtree(target, ignore_errors=True)
        if target.parent.exists() and not any(target.parent.iterdir()):
            target.parent.rmdir()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Asks again and again rather than waiting in a thread, which nobody could call back."""
        self._root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _locked(descriptor):
                await self._clock.sleep(_LOCK_INTERVAL)
            yield
        finally:
            os.close(descriptor)


def digest_of(folder: Path) -> str:
    """The same for the same names, contents and executable files; nothing else about a file counts."""
    digest = hashlib.sha256()
    for file in files_in(folder):
        content = hashlib.sha256()
        with (folder / file.path).open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                content.update(chunk)
        digest.update(f"{file.path}\0{int(file.executable)}\0{content.hexdigest()}\n".encode())
    return digest.hexdigest()


def _copy(source: Path, target: Path, file: PackFile) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(reading, "rb") as source_file, target.open("xb") as target_file:
        shutil.copyfileobj(source_file, target_file, _CHUNK)
    target.chmod(0o755 if file.executable else 0o644)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _emptied(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _flush(folder: Path) -> None:
    """A row must not outlive, in a power cut, the files that it names."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        _flush_folder(path)


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
