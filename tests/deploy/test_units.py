"""The systemd units against what the code knows; systemd is not needed."""

import shlex
from collections import defaultdict
from pathlib import Path

import pytest

from attune.kernel.settings import WorkerSettings

DIRECTORY = Path(__file__).parents[2] / "deploy" / "systemd"
ROLES = ["api", "executor", "worker", "sensor"]
SERVICES = [*ROLES, "migrate"]
CONFIGURATION = ["--config", "/etc/attune/config.yaml"]

Unit = dict[tuple[str, str], list[str]]


def parse(path: Path) -> Unit:
    """Values by section and key; a key may come more than once. Anything that is no unit file is an error."""
    unit: Unit = defaultdict(list)
    section = ""
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            assert line in ("[Unit]", "[Service]", "[Install]"), line
            section = line.strip("[]")
            continue
        key, equals, value = line.partition("=")
        assert section, line
        assert equals, line
        assert key.isalnum(), line
        unit[section, key].append(value)
    return unit


def service(name: str) -> Unit:
    return parse(DIRECTORY / f"attune-{name}.service")


def test_there_is_a_unit_for_each_role_the_schema_and_all_together() -> None:
    names = {path.name for path in DIRECTORY.iterdir()}

    assert names == {"attune.target", *(f"attune-{name}.service" for name in SERVICES)}


def test_the_target_wants_every_role() -> None:
    [wanted] = parse(DIRECTORY / "attune.target")["Unit", "Wants"]

    assert wanted.split() == [f"attune-{name}.service" for name in ROLES]


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_runs_its_command(name: str) -> None:
    [line] = service(name)["Service", "ExecStart"]
    program, *arguments = shlex.split(line)
    command = ["db", "upgrade"] if name == "migrate" else [name]

    assert Path(program).name == "attune"
    assert arguments == [*command, *CONFIGURATION]


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_has_no_more_rights_than_it_needs(name: str) -> None:
    unit = service(name)

    assert unit["Service", "User"] == ["attune"]
    assert unit["Service", "EnvironmentFile"] == ["/etc/attune/attune.env"]
    assert unit["Service", "CapabilityBoundingSet"] == [""]
    assert unit["Service", "ProtectSystem"] == ["strict"]
    assert unit["Service", "NoNewPrivileges"] == ["true"]
    assert ("Service", "Environment") not in unit, "settings belong into the configuration"


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_comes_back_and_goes_with_the_target(name: str) -> None:
    unit = service(name)

    assert unit["Service", "Restart"] == ["on-failure"]
    assert unit["Unit", "StartLimitIntervalSec"] == ["0"]
    assert unit["Unit", "PartOf"] == ["attune.target"]


@pytest.mark.parametrize("name", ROLES)
def test_a_role_starts_after_the_schema_and_has_time_to_finish(name: str) -> None:
    unit = service(name)
    [stop_timeout] = unit["Service", "TimeoutStopSec"]

    assert "attune-migrate.service" in unit["Unit", "After"][0].split()
    assert "attune-migrate.service" in unit["Unit", "Wants"][0].split()
    assert unit["Install", "WantedBy"] == ["attune.target"]
    assert unit["Service", "KillMode"] == ["mixed"]
    assert float(stop_timeout) > WorkerSettings().shutdown_timeout
