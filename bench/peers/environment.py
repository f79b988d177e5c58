"""The peers' own Python environments, in `.tools`, each exactly as its lock file says.

`python -m bench.peers.environment` makes them, or finds them ready; with `--lock` it renews the lock files first.
An environment carries a stamp, written last: the digest of the lock file it was filled from.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
STAMP = ".attune-peers"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class EnvironmentFailed(Exception):
    """An environment could not be made; carries what the tool said."""


class Environment(NamedTuple):
    """A folder for the interpreter and the lock file that fills it."""

    folder: Path
    lock: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def wanted(self) -> Path:
        """What the lock file is made from: the few packages that are asked for by name."""
        return self.lock.with_suffix(".in")

    def is_ready(self) -> bool:
        stamp = self.folder / STAMP
        return self.python.exists() and stamp.exists() and stamp.read_text() == self._digest()

    def seal(self) -> None:
        """Say that the folder now holds what the lock file names."""
        (self.folder / STAMP).write_text(self._digest())

    def _digest(self) -> str:
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()


_HERE = ROOT / "bench" / "peers"
SHARED = Environment(ROOT / ".tools" / "peers", _HERE / "requirements.lock")
# arq asks for a redis that is older than the newest celery and taskiq-redis can use.
ARQ = Environment(ROOT / ".tools" / "peers-arq", _HERE / "requirements-arq.lock")


def provide(environment: Environment) -> Path:
    """The environment's interpreter, made or renewed where it has to be."""
    if not environment.is_ready():
        uv = _uv()
        _run(uv, "--quiet", "venv", "--clear", "--python", sys.executable, environment.folder)
        _run(
            *(uv, "--quiet", "pip", "sync", "--compile-bytecode", "--require-hashes"),
            *("--python", environment.python, environment.lock),
        )
        environment.seal()
    return environment.python


def lock(environment: Environment) -> None:
    """Renew the lock file; versions that it names already stay, where they still fit."""
    _run(
        *(_uv(), "--quiet", "pip", "compile", "--universal", "--generate-hashes"),
        *("--python-version", "3.11", "--no-header", environment.wanted, "-o", environment.lock),
    )


def _uv() -> str:
    return _run(ROOT / "tools" / "bootstrap", "--print-uv").strip()


def _run(*command: str | Path) -> str:
    certificates = {"UV_SYSTEM_CERTS": "1"} if CERTIFICATES.exists() else {}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**certificates, **os.environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise EnvironmentFailed(f"`{' '.join(map(str, command))}` failed:\n{done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers.environment", description=__doc__)
    parser.add_argument("--lock", action="store_true", help="renew the lock files first")
    renew = parser.parse_args().lock
    for environment in (SHARED, ARQ):
        if renew:
            lock(environment)
        print(provide(environment))


if __name__ == "__main__":
    main()
