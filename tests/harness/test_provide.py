"""What happens when a server's programs are not there, told without touching the machine."""

import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness import binaries
from harness.binaries import ServerMissing, find_postgresql, find_rabbitmq, find_redis, require
from harness.provide import Install, Refuse, install, missing_packages, plan


def nothing(name: str) -> None:
    return None


def test_only_what_is_missing_is_named() -> None:
    found = {"redis-server": None, "postgresql": Path("/here"), "rabbitmq-server": None}

    assert missing_packages(found) == ("rabbitmq-server", "redis-server")


def test_nothing_missing_nothing_to_do() -> None:
    assert plan((), is_root=False, has_apt=False) is None


def test_root_installs_what_is_missing() -> None:
    assert plan(["redis-server"], is_root=True, has_apt=True) == Install(("redis-server",))


@pytest.mark.parametrize(("is_root", "has_apt"), [(False, True), (False, False), (True, False)])
def test_others_are_told_exactly_which_packages_to_install(is_root: bool, has_apt: bool) -> None:
    decision = plan(["postgresql", "redis-server"], is_root=is_root, has_apt=has_apt)

    assert isinstance(decision, Refuse)
    assert decision.message.endswith(
        "install these packages and run again: postgresql redis-server"
    )


def test_services_cannot_start_during_an_installation_and_no_trace_is_left(tmp_path: Path) -> None:
    policy, cluster = tmp_path / "policy-rc.d", tmp_path / "etc" / "create" / "harness.conf"
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> None:
        assert "exit 101" in policy.read_text()
        assert policy.stat().st_mode & stat.S_IXUSR
        assert cluster.read_text() == "create_main_cluster = false\n"
        commands.append(command)

    install(["postgresql"], run, policy=policy, cluster_configuration=cluster)

    assert [command[2] for command in commands] == ["update", "install"]
    assert commands[1][-1] == "postgresql"
    assert list(tmp_path.iterdir()) == []


def test_a_failed_installation_leaves_no_trace_either(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> None:
        raise subprocess.CalledProcessError(100, command)

    with pytest.raises(subprocess.CalledProcessError):
        install(["redis-server"], run, policy=tmp_path / "policy-rc.d")
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("mine")

    install(["redis-server"], lambda command: None, policy=policy)

    assert policy.read_text() == "mine"


def test_the_newest_postgresql_that_will_do_is_taken(tmp_path: Path) -> None:
    for version in ("9", "13", "15", "16", "notes"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch()

    assert find_postgresql(nothing, tmp_path) == tmp_path / "16" / "bin"


def test_an_old_postgresql_is_none(tmp_path: Path) -> None:
    (tmp_path / "13" / "bin").mkdir(parents=True)
    (tmp_path / "13" / "bin" / "initdb").touch()

    assert find_postgresql(nothing, tmp_path) is None


def test_servers_that_are_nowhere_are_not_found(tmp_path: Path) -> None:
    assert find_rabbitmq(nothing, tmp_path / "rabbitmq-server") is None
    assert find_redis(nothing) is None


def test_a_test_that_needs_a_missing_server_is_told_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binaries, "FINDERS", {"redis-server": lambda: None})

    with pytest.raises(ServerMissing, match="install the package redis-server"):
        require("redis-server")
