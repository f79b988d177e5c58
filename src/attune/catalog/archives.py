"""An uploaded .tar.gz, unpacked into a folder within bounds: plain files only, none of them outside.

The archive is untrusted to the byte. What it claims is never believed: sizes are counted while reading,
and a header cannot make this process hold more than one file's worth of memory.
"""

import gzip
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from attune.catalog.sources.folder import (
    LEFT_OUT,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    PackFile,
    check_bounds,
    refused,
)
from attune.catalog.sources.parsing import HEAD
from attune.kernel.errors import InvalidInput

MAX_UPLOAD_BYTES: Final = 100_000_000

_MAX_ENTRIES: Final = 2 * MAX_FILES
_MAX_HEADER_BYTES: Final = 1_000_000
_MAX_NAME_BYTES: Final = 1000
_MAX_STREAM_BYTES: Final = MAX_TOTAL_BYTES + _MAX_ENTRIES * 2048
_CHUNK: Final = 256 * 1024
_BROKEN: Final = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError)


def unpack(archive: BinaryIO, folder: Path) -> Path:
    """Unpack into an empty folder; the folder inside it that holds pack.yaml."""
    if archive.seek(0, os.SEEK_END) > MAX_UPLOAD_BYTES:
        raise refused("", f"the upload is larger than {MAX_UPLOAD_BYTES} bytes")
    archive.seek(0)
    with _broken_is_refused():
        stream = _BoundedStream(gzip.GzipFile(fileobj=archive, mode="rb"))
        members = tarfile.TarFile(fileobj=stream)  # type: ignore[arg-type]  # it needs no more
    with members:
        _write_all(members, folder)
    _check_end(stream)
    return _pack_folder(folder)


class _BoundedStream:
    """The decompressed archive, which may not go on for ever nor be asked for too much at once."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self.last = b""

    def read(self, size: int) -> bytes:
        if size > max(_CHUNK, _MAX_HEADER_BYTES):
            raise refused("", "the archive has a header that is too large")
        self._check(self.tell() + size)
        self.last = self._stream.read(size)
        return self.last

    def seek(self, position: int) -> int:
        self._check(position)
        return self._stream.seek(position)

    def tell(self) -> int:
        return self._stream.tell()

    def _check(self, position: int) -> None:
        if position > _MAX_STREAM_BYTES:
            raise refused("", f"the pack has more than {MAX_TOTAL_BYTES} bytes")


def _write_all(members: tarfile.TarFile, folder: Path) -> None:
    written: set[str] = set()
    total = 0
    for member in _entries(members):
        path = _path_of(member)
        if path is None:
            continue
        if path in written:
            raise refused(path, "the archive has this file twice")
        written.add(path)
        check_bounds(PackFile(path, member.size, False), len(written), total + member.size)  # noqa: FBT003
        total += _write(members, member, folder / path, path)


def _entries(members: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for _ in range(_MAX_ENTRIES):
        with _broken_is_refused():
            member = members.next()
        if member is None:
            return
        yield member
    raise refused("", f"the archive has more than {_MAX_ENTRIES} entries")


def _check_end(stream: _BoundedStream) -> None:
    """tarfile takes a broken header for the end, and would lose what follows without a word."""
    while not stream.last.strip(b"\0"):
        with _broken_is_refused():
            if not stream.read(_CHUNK):
                return
    raise refused("", "not a usable .tar.gz archive (broken in the middle)")


def _path_of(member: tarfile.TarInfo) -> str | None:
    """Where a file belongs below the folder; None for what is not kept."""
    steps = [step for step in member.name.split("/") if step not in ("", ".")]
    name = "/".join(steps).encode(errors="replace").decode()
    if member.name.startswith("/") or ".." in steps:
        raise refused(name, "a path must stay inside the pack")
    if name != "/".join(steps) or "\\" in name or "\x00" in name:
        raise refused(name, "the file's name has characters that are refused")
    if len(name.encode()) > _MAX_NAME_BYTES or any(len(s.encode()) > 255 for s in steps):
        raise refused(name[:80] + "...", "the file's name is too long")
    if len(steps) > MAX_DEPTH:
        raise refused(name, f"folders are nested more than {MAX_DEPTH} deep")
    if not LEFT_OUT.isdisjoint(steps) or member.isdir():
        return None
    if not member.isreg() or member.sparse is not None or not steps:
        raise refused(name, "links and devices are refused")
    return name


def _write(members: tarfile.TarFile, member: tarfile.TarInfo, target: Path, path: str) -> int:
    """Copy one file; its mode keeps nothing but whether it may be executed."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise refused(path, "the archive has a file and a folder of the same name") from error
    count = 0
    with os.fdopen(descriptor, "wb") as file:
        for chunk in _chunks(members, member):
            count += file.write(chunk)
            if count > MAX_FILE_BYTES:
                raise refused(path, f"the file is larger than {MAX_FILE_BYTES} bytes")
        os.fchmod(file.fileno(), 0o755 if member.mode & 0o100 else 0o644)
    return count


def _chunks(members: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    with _broken_is_refused():
        content = members.extractfile(member)
    while content is not None:
        with _broken_is_refused():
            chunk = content.read(_CHUNK)
        if not chunk:
            return
        yield chunk


@contextmanager
def _broken_is_refused() -> Iterator[None]:
    """Whatever the archive's bytes bring the readers to say; a full disk is not among it."""
    try:
        yield
    except InvalidInput:
        raise
    except (*_BROKEN, OverflowError, RecursionError) as error:
        raise refused("", f"not a usable .tar.gz archive ({type(error).__name__})") from error


def _pack_folder(folder: Path) -> Path:
    """pack.yaml stands at the root or in the one folder at the top."""
    if (folder / HEAD).is_file():
        return folder
    top = list(folder.iterdir())
    if len(top) == 1 and (top[0] / HEAD).is_file():
        return top[0]
    raise refused(HEAD, "the archive has no such file at its root or in one top folder")
