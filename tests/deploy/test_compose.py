"""docker-compose.yaml against what the code knows; a container engine is not needed."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from attune.kernel.configuration import known_variables
from attune.kernel.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ROLES = ["api", "executor", "worker", "sensor"]
SERVERS = ["postgres", "rabbitmq", "redis"]
OURS = [*ROLES, "migrate"]

REQUIRED = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")
PASSWORD_IN_URL = re.compile(r"://[^:/@]*:(?P<password>.*)@")


def test_the_services_are_the_roles_the_schema_and_the_servers() -> None:
    assert sorted(SERVICES) == sorted([*ROLES, "migrate", *SERVERS])


@pytest.mark.parametrize("name", ROLES)
def test_a_role_runs_its_command(name: str) -> None:
    assert SERVICES[name]["command"] == [name]


def test_the_schema_is_upgraded_once_and_before_the_roles() -> None:
    assert SERVICES["migrate"]["command"] == ["db", "upgrade"]
    assert SERVICES["migrate"]["restart"] == "no"
    for name in ROLES:
        conditions = {
            key: value["condition"] for key, value in SERVICES[name]["depends_on"].items()
        }
        assert conditions == {
            "migrate": "service_completed_successfully",
            **dict.fromkeys(SERVERS, "service_healthy"),
        }


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_has_a_health_check_and_keeps_its_data(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]
    [volume] = SERVICES[name]["volumes"]
    assert volume.partition(":")[0] in COMPOSE["volumes"]
    assert "ports" not in SERVICES[name]
    assert SERVICES[name]["networks"] == ["inner"]


@pytest.mark.parametrize("name", OURS)
def test_a_role_has_no_more_rights_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in service, "the image's own user is not root; see the Dockerfile"


@pytest.mark.parametrize("name", ROLES)
def test_a_role_has_time_to_finish_what_it_runs(name: str) -> None:
    grace = float(SERVICES[name]["stop_grace_period"].removesuffix("s"))
    shutdown = float(SERVICES[name]["environment"]["ATTUNE__WORKER__SHUTDOWN_TIMEOUT"])

    assert grace > shutdown
    assert grace > WorkerSettings().shutdown_timeout
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    assert set(SERVICES[name]["environment"]) <= known_variables()


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_secret_must_be_given(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if re.search(r"PASS|SECRET|ENCRYPTION_KEY|AUTH", variable):
            assert REQUIRED.fullmatch(value), variable
        if variable.endswith("URL"):
            match = PASSWORD_IN_URL.search(value)
            assert match, variable
            assert REQUIRED.fullmatch(match["password"]), variable
