"""Where the servers' programs are on this machine, and which Debian package brings each."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

Which = Callable[[str], str | None]

LOWEST_POSTGRESQL = 14
DEBIAN_POSTGRESQL = Path("/usr/lib/postgresql")
DEBIAN_RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class ServerMissing(Exception):
    """A server's programs are not on this machine; tests fail on it rather than skip."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"no usable program of {package} on this machine; install the package {package}, "
            f"or run `make test`, which installs it when run as root"
        )
        self.package = package


def find_postgresql(which: Which = shutil.which, debian: Path = DEBIAN_POSTGRESQL) -> Path | None:
    """The directory with postgres, initdb and psql; Debian keeps one per version, off the PATH."""
    postgres = which("postgres")
    if postgres and which("initdb") and _major_version(postgres) >= LOWEST_POSTGRESQL:
        return Path(postgres).resolve().parent
    versions = sorted(
        (int(path.parent.parent.name), path.parent)
        for path in debian.glob("*/bin/initdb")
        if path.parent.parent.name.isdecimal()
    )
    usable = [directory for major, directory in versions if major >= LOWEST_POSTGRESQL]
    return usable[-1] if usable else None


def find_rabbitmq(which: Which = shutil.which, debian: Path = DEBIAN_RABBITMQ) -> Path | None:
    """The server's own script. Debian's command on the PATH insists on the system's user and directories."""
    if debian.exists():
        return debian.resolve()
    found = which("rabbitmq-server")
    return Path(found).resolve() if found else None


def find_redis(which: Which = shutil.which) -> Path | None:
    """The Redis server's program."""
    found = which("redis-server")
    return Path(found) if found else None


FINDERS: Mapping[str, Callable[[], Path | None]] = {
    "postgresql": find_postgresql,
    "rabbitmq-server": find_rabbitmq,
    "redis-server": find_redis,
}


def require(package: str) -> Path:
    """The place of a package's programs, or an error that names the package."""
    found = FINDERS[package]()
    if found is None:
        raise ServerMissing(package)
    return found


def _major_version(postgres: str) -> int:
    answer = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\b(\d+)", answer.stdout)
    return int(match.group(1)) if match else 0
