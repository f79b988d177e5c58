"""`local.json` in the data directory: how commands on this machine find a running `attune up`, and get in.

Apart from the part that writes it, because those who read it start in a fraction of a second.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

_NAME: Final = "local.json"


class LocalServer(msgspec.Struct, frozen=True):
    url: str
    token: str

    def __repr__(self) -> str:
        return f"LocalServer({self.url!r})"


def local_file(data_dir: Path) -> Path:
    return data_dir / _NAME


def read_local(data_dir: Path) -> LocalServer | None:
    """None where no server of this machine says that it runs, or where it is another user's."""
    try:
        return msgspec.json.decode(local_file(data_dir).read_bytes(), type=LocalServer)
    except (OSError, msgspec.MsgspecError):
        return None


def write_private(file: Path, content: bytes) -> None:
    """Whole or not at all, and readable by its owner alone from the first byte on."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise
