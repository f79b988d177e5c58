"""What an address of a server says, and how to show it without its password."""

import re
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit


class DatabaseKind(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


def database_kind(url: str) -> DatabaseKind:
    scheme = urlsplit(url).scheme
    return DatabaseKind.SQLITE if scheme == "sqlite" else DatabaseKind.POSTGRESQL


def check_scheme(url: str, schemes: tuple[str, ...]) -> None:
    """Raise ValueError without repeating the URL, which may hold a password."""
    if urlsplit(url).scheme not in schemes:
        raise ValueError(f"must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")


_PASSWORD = re.compile(r"(\w+://[^\s:/@]*:)\S*(@)")


def masked(text: str) -> str:
    """The text with the password of every URL in it hidden, also one that is not a proper URL any more."""
    return _PASSWORD.sub(r"\1***\2", text)


def sqlite_path(url: str) -> Path:
    """The file of sqlite:///relative.db or sqlite:////absolute.db."""
    return Path(url.removeprefix("sqlite://").removeprefix("/"))
