"""Puts the servers' programs on this machine before tests need them: `python -m harness.provide`.

Debian starts a server as soon as its package is installed. Here a server is wanted as a program only, so the
installation runs under a policy that forbids starting services, and leaves running servers as they are.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.binaries import FINDERS

POLICY = Path("/usr/sbin/policy-rc.d")
POLICY_TEXT = "#!/bin/sh\nexit 101\n"
CLUSTER_CONFIGURATION = Path("/etc/postgresql-common/createcluster.d/attune-harness.conf")
CLUSTER_CONFIGURATION_TEXT = "create_main_cluster = false\n"

Run = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class Install:
    """Packages to install, and that this process may install."""

    packages: tuple[str, ...]


@dataclass(frozen=True)
class Refuse:
    """What a person has to do first."""

    message: str


def missing_packages(found: Mapping[str, Path | None]) -> tuple[str, ...]:
    """The packages whose programs were not found, in a fixed order."""
    return tuple(sorted(package for package, place in found.items() if place is None))


def plan(missing: Sequence[str], *, is_root: bool, has_apt: bool) -> Install | Refuse | None:
    """What to do about missing packages; None when there is nothing to do."""
    if not missing:
        return None
    if is_root and has_apt:
        return Install(tuple(missing))
    names = " ".join(missing)
    why = (
        "only root can install them" if has_apt else "there is no apt-get here to install them with"
    )
    return Refuse(
        f"tests and benchmarks need real servers, and {why}; "
        f"install these packages and run again: {names}"
    )


def install(
    packages: Sequence[str],
    run: Run,
    *,
    policy: Path = POLICY,
    cluster_configuration: Path = CLUSTER_CONFIGURATION,
) -> None:
    """Install packages so that nothing they bring is started, and leave no trace of how."""
    with ExitStack() as stack:
        stack.enter_context(_temporary_file(policy, POLICY_TEXT, mode=0o755))
        if "postgresql" in packages:
            stack.enter_context(
                _temporary_file(cluster_configuration, CLUSTER_CONFIGURATION_TEXT, mode=0o644)
            )
        run(["apt-get", "-qq", "update"])
        run(["apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages])


@contextmanager
def _temporary_file(path: Path, text: str, mode: int) -> Iterator[None]:
    """A file that exists for the block only; one that was there before stays as it is."""
    created_directories = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        yield
        return
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        path.chmod(mode)
        yield
    finally:
        path.unlink(missing_ok=True)
        _remove_if_empty(created_directories)


def _remove_if_empty(directories: Sequence[Path]) -> None:
    for directory in directories:
        if directory.exists() and not any(directory.iterdir()):
            directory.rmdir()


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )


def main() -> int:
    """Bring every server's programs, or say what is missing."""
    missing = missing_packages({package: find() for package, find in FINDERS.items()})
    match plan(missing, is_root=os.geteuid() == 0, has_apt=shutil.which("apt-get") is not None):
        case None:
            return 0
        case Refuse(message):
            print(f"provide: {message}", file=sys.stderr)
            return 1
        case Install(packages):
            return _install_or_explain(packages)


def _install_or_explain(packages: tuple[str, ...]) -> int:
    print(f"provide: installing the packages {' '.join(packages)}", file=sys.stderr)
    try:
        install(packages, _run)
    except subprocess.CalledProcessError as error:
        print(
            f"{error.output}\nprovide: `{' '.join(error.cmd)}` failed with {error.returncode}; "
            f"install these packages and run again: {' '.join(packages)}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
