"""`attune up`: the whole system in one process on SQLite."""

import json
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import attune
from tests.e2e.attune_process import AttuneProcess, run_attune


def get(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own address
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def up(folder: Path, *arguments: str, **variables: str) -> AttuneProcess:
    return AttuneProcess("up", "--data-dir", str(folder), "--port", "0", *arguments, **variables)


def test_it_starts_answers_and_stops(tmp_path: Path) -> None:
    with up(tmp_path) as process:
        address = process.address()
        assert get(f"{address}/health") == (200, {"status": "ok"})
        assert get(f"{address}/health/live")[0] == 200
        assert get(f"{address}/health/ready")[0] == 200
        status, detailed = get(f"{address}/health/detailed")
        assert status == 200
        assert detailed["database"] == "connected"
        assert detailed["version"] == attune.__version__
        assert get(f"{address}/openapi.json")[0] == 200
        status, missing = get(f"{address}/api/v1/nothing")
        assert (status, missing) == (404, {"error": "No such path."})
        assert process.stop() == 0
    assert all(line.startswith("{") for line in process.log), process.log


def test_it_comes_back_on_the_same_data_after_a_kill(tmp_path: Path) -> None:
    with up(tmp_path) as process:
        process.address()
        process.signal(signal.SIGKILL)
    with up(tmp_path) as process:
        assert get(f"{process.address()}/health/ready")[0] == 200
        process.signal(signal.SIGINT)
        assert process.wait() == 0


def test_a_data_directory_in_use_is_refused(tmp_path: Path) -> None:
    with up(tmp_path) as process:
        process.address()
        second = run_attune("up", "--data-dir", str(tmp_path), "--port", "0")
        assert second.returncode == 2
        assert f"in use by process {process.pid}" in second.stderr
        assert "PostgreSQL" in second.stderr


def test_a_port_in_use_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = run_attune("up", "--data-dir", str(tmp_path), "--port", port)
    assert refused.returncode == 2
    assert f"Cannot listen on http://127.0.0.1:{port}" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ATTUNE__SERVER__PROT": "1"}, "did you mean ATTUNE__SERVER__PORT"),
        ({"ATTUNE__DATABASE__URL": "mysql://u:sesame@h/x"}, "must start with postgresql://"),
        ({"ATTUNE_CONFIG": "nowhere.yaml"}, "nowhere.yaml cannot be read"),
    ],
)
def test_a_bad_configuration_is_told_in_one_sentence(
    tmp_path: Path, variables: dict[str, str], words: str
) -> None:
    refused = run_attune("up", "--data-dir", str(tmp_path), **variables)
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "sesame" not in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("role", ["api", "executor", "worker", "sensor"])
def test_a_role_of_its_own_is_told_to_use_postgresql(role: str, tmp_path: Path) -> None:
    refused = run_attune(role, ATTUNE__DATA_DIR=str(tmp_path))
    assert refused.returncode == 2
    assert "set database.url to PostgreSQL" in refused.stderr


def test_the_help_names_every_command() -> None:
    shown = run_attune("--help")
    assert shown.returncode == 0
    for command in ("up", "api", "executor", "worker", "sensor", "db"):
        assert command in shown.stdout
    assert run_attune("--version").stdout == f"attune {attune.__version__}\n"
