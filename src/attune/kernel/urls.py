"""What an address of a server says, and how to show it without its password."""

from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit


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


def masked(url: str) -> str:
    """The URL as a log may show it: everything but the password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    account, _, address = parts.netloc.rpartition("@")
    login = account.partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{login}:***@{address}"))


def sqlite_path(url: str) -> Path:
    """The file of sqlite:///relative.db or sqlite:////absolute.db."""
    return Path(url.removeprefix("sqlite://").removeprefix("/"))
