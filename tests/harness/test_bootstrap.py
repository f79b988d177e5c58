"""tools/bootstrap in a tree of its own, with stand-ins for the programs that would reach for the network."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.watchdog import ROOT

PLAIN_TOOLS = ("sh", "dirname", "cat", "find", "mkdir", "rm", "cut", "grep", "touch", "ln", "flock")
PYTHON = """\
case "$*" in
*sys.executable*) echo "$0" ;;
*version_info*) exit 0 ;;
*ensurepip*) test -e "$HOME/venv-installed" ;;
*) exit 1 ;;
esac
"""
OLD_PYTHON = "exit 1"
UV = """\
echo "$@" >>"$HOME/uv-calls"
case "$*" in
*--clear*) mkdir -p .venv/bin; ln -sf "$(command -v python3)" .venv/bin/python ;;
*editable*) test ! -e "$HOME/break" || exit 1; ln -sf python .venv/bin/attune ;;
esac
"""


@dataclass(frozen=True)
class Tree:
    """A clone with nothing but what bootstrap reads, and a PATH with nothing but stand-ins."""

    root: Path
    home: Path

    def put(self, name: str, script: str) -> None:
        path = self.home / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def bootstrap(self) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.home / "bin"), "HOME": str(self.home)}
        command = [self.root / "tools" / "bootstrap"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def uv_calls(self) -> int:
        calls = self.home / "uv-calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(root=tmp_path / "clone", home=tmp_path / "home")
    (tree.home / "bin").mkdir(parents=True)
    (tree.root / "tools").mkdir(parents=True)
    for name in ("bootstrap", "uv.lock"):
        shutil.copy(ROOT / "tools" / name, tree.root / "tools" / name)
    for name in ("pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        (tree.root / name).touch()
    for name in PLAIN_TOOLS:
        (tree.home / "bin" / name).symlink_to(shutil.which(name) or name)
    tree.put("python3", PYTHON)
    tree.put("uv", UV)
    tree.put("id", "echo 1000")
    return tree


def test_a_second_run_has_nothing_to_do(tree: Tree) -> None:
    assert tree.bootstrap().returncode == 0
    assert tree.uv_calls() == 3

    again = tree.bootstrap()

    assert (again.returncode, again.stderr) == (0, "")
    assert tree.uv_calls() == 3


def test_a_newer_lock_file_is_installed_into_the_same_environment(tree: Tree) -> None:
    tree.bootstrap()
    stamp = (tree.root / ".venv" / ".attune-bootstrap").stat().st_mtime
    os.utime(tree.root / "requirements-dev.lock", (stamp + 1, stamp + 1))

    assert tree.bootstrap().returncode == 0
    assert tree.uv_calls() == 5


def test_an_interrupted_run_is_redone(tree: Tree) -> None:
    (tree.home / "break").touch()
    assert tree.bootstrap().returncode != 0

    (tree.home / "break").unlink()
    assert tree.bootstrap().returncode == 0
    assert (tree.root / ".venv" / ".attune-bootstrap").exists()


def test_a_tree_that_was_moved_is_installed_anew(tree: Tree) -> None:
    tree.bootstrap()
    moved = Tree(root=tree.root.rename(tree.root.with_name("moved")), home=tree.home)

    assert moved.bootstrap().returncode == 0
    assert moved.uv_calls() > 3


def test_a_machine_with_an_old_python_only_is_told_so(tree: Tree) -> None:
    tree.put("python3", OLD_PYTHON)

    done = tree.bootstrap()

    assert done.returncode == 1
    assert "needs Python 3.11 or later" in done.stderr


def test_a_user_who_cannot_install_packages_is_told_the_package(tree: Tree) -> None:
    (tree.home / "bin" / "uv").unlink()
    tree.put("apt-get", 'touch "$HOME/venv-installed"')

    done = tree.bootstrap()

    assert done.returncode == 1
    assert "install the package python3-venv" in done.stderr
    assert not (tree.home / "venv-installed").exists()


def test_root_gets_the_package_installed(tree: Tree) -> None:
    (tree.home / "bin" / "uv").unlink()
    tree.put("id", "echo 0")
    tree.put("apt-get", 'touch "$HOME/venv-installed"')

    done = tree.bootstrap()

    assert "installing the package python3-venv" in done.stderr
    assert (tree.home / "venv-installed").exists()
    assert "installing uv" in done.stderr, "went on after the package was there"
