"""Whatever is sent to the API as its own description allows or forbids, it answers; it never fails (no 5xx)."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from tests.e2e.installation import Installation, production

SECONDS = 30
# Streams stay open by design. What the run must not take away from itself: its own account and password.
LEFT_OUT = r"(/stream$|/auth/change-password$)"

# 501 is an answer: what was asked for is not configured here.
CONFIG = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", 501]
"""


@pytest.fixture(params=["embedded", "production"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    if request.param == "embedded":
        with Installation(tmp_path) as made:
            yield made.up()
        return
    postgresql: PostgreSQL = request.getfixturevalue("postgresql")
    rabbitmq: RabbitMQ = request.getfixturevalue("rabbitmq")
    url, broker = postgresql.create_database(), rabbitmq.create_vhost()
    with production(tmp_path, url, broker) as made:
        yield made.roles(executors=1, workers=1)
    rabbitmq.delete_vhost(broker)
    postgresql.drop_database(url)


@pytest.mark.timeout(SECONDS + 240)
def test_no_input_makes_the_api_fail(installation: Installation, tmp_path: Path) -> None:
    installation.client()
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "--config-file",
        str(config),
        "run",
        f"{installation.address}/openapi.json",
        "--header",
        f"Authorization: Bearer {installation.token}",
        "--checks",
        "not_a_server_error",
        "--phases",
        "examples,coverage,fuzzing",
        "--exclude-path-regex",
        LEFT_OUT,
        "--max-time",
        str(SECONDS),
        "--request-timeout",
        "30",
        "--seed",
        "1",
        "--continue-on-failure",
        "--generation-database",
        "none",
        "--warnings",
        "off",
        "--no-color",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=SECONDS + 200
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "No operations selected" not in done.stdout
