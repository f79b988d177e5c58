"""A pack as the one file that is uploaded."""

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attune.kernel.errors import InvalidInput

_HEAD: Final = "pack.yaml"
_LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", "__pycache__"})
_LARGEST_UPLOAD: Final = 100_000_000


def archive_of(path: Path) -> tuple[str, bytes]:
    """The name and bytes of a .tar.gz: an archive as it is, a folder packed. The same folder gives the same bytes."""
    try:
        if path.is_dir():
            name, content = f"{path.resolve().name}.tar.gz", _packed(path)
        else:
            name, content = path.name, path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.", field="path") from error
    if len(content) > _LARGEST_UPLOAD:
        raise InvalidInput(
            f"{path} makes an upload of more than {_LARGEST_UPLOAD} bytes.", field="path"
        )
    return name, content


def _packed(folder: Path) -> bytes:
    if not (folder / _HEAD).is_file():
        raise InvalidInput(f"{folder} is no pack: it has no {_HEAD}.", field="path")
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as compressed,
        tarfile.TarFile(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in sorted(_files(folder)):
            _add(archive, file, str(file.relative_to(folder)))
    return buffer.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in (*folders, *files):
            found = Path(place) / name
            if found.is_symlink() or not (found.is_file() or found.is_dir()):
                inside = found.relative_to(folder)
                raise InvalidInput(f"{inside}: links and devices are refused.", field="path")
            if name not in folders:
                yield found


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    """Of its mode only whether it may be executed is kept, as the server does."""
    member = tarfile.TarInfo(name)
    content = file.read_bytes()
    member.size = len(content)
    member.mode = 0o755 if os.access(file, os.X_OK) else 0o644
    archive.addfile(member, io.BytesIO(content))
