"""The roles as processes of their own, on real PostgreSQL and RabbitMQ."""

import asyncio
import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import aiormq
import asyncpg
import pytest

from harness.ports import free_port
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from tests.e2e.attune_process import AttuneProcess, run_attune
from tests.e2e.installation import production as whole

Variables = dict[str, str]


@pytest.fixture
def production(postgresql_url: str, rabbitmq_url: str, tmp_path: Path) -> Variables:
    return {
        "ATTUNE__DATA_DIR": str(tmp_path),
        "ATTUNE__DATABASE__URL": postgresql_url,
        "ATTUNE__MESSAGE_QUEUE__URL": rabbitmq_url,
        "ATTUNE__SECURITY__JWT_SECRET": "a-secret-of-the-tests",
        "ATTUNE__SECURITY__ENCRYPTION_KEY": "another-secret-of-the-tests",
        "ATTUNE__SERVER__PORT": "0",
    }


@pytest.fixture
def upgraded(production: Variables) -> Variables:
    done = run_attune("db", "upgrade", **production)
    assert done.returncode == 0, done.stderr
    return production


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("role", ["api", "executor", "worker", "sensor"])
def test_each_role_starts_and_stops_gracefully(role: str, upgraded: Variables) -> None:
    with AttuneProcess(role, **upgraded) as process:
        process.wait_for_event("Ready.")
        assert process.stop() == 0
    assert not [line for line in process.log if '"level":"error"' in line]
    assert "secret-of-the-tests" not in "\n".join(process.log)


def test_a_database_without_the_schema_is_refused_with_what_to_do(production: Variables) -> None:
    refused = run_attune("executor", **production)
    assert refused.returncode == 2
    assert "attune db upgrade" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_check_command_tells_whether_the_schema_is_there(production: Variables) -> None:
    assert run_attune("db", "check", **production).returncode == 2
    assert run_attune("db", "upgrade", **production).returncode == 0
    assert run_attune("db", "check", **production).returncode == 0


def test_a_process_waits_for_servers_that_are_still_away(
    upgraded: Variables, postgresql: PostgreSQL, rabbitmq: RabbitMQ
) -> None:
    postgresql.stop()
    rabbitmq.stop()
    with AttuneProcess("executor", **upgraded) as process:
        assert process.wait_for_event("A server is away, trying again.")["server"] == "database"
        postgresql.start()
        process.wait_for_event("The message broker is not connected.")
        rabbitmq.start()
        process.wait_for_event("Ready.")
        assert process.stop() == 0


def test_a_process_that_waits_for_a_server_can_be_stopped(
    upgraded: Variables, postgresql: PostgreSQL
) -> None:
    postgresql.stop()
    with AttuneProcess("worker", **upgraded) as process:
        process.wait_for_event("A server is away, trying again.")
        assert process.stop() == 0


async def publish_stray(url: str, body: bytes) -> None:
    """A message that no queue takes, from a plain AMQP client."""
    connection = await aiormq.connect(url)
    channel = await connection.channel()
    await channel.basic_publish(body, exchange="attune.executions", routing_key="rain.fell")
    await connection.close()


async def kept_letters(url: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT queue, reason, body FROM attune.dead_letter ORDER BY id")
    await connection.close()
    return list(rows)


def test_f31_an_executor_outlives_the_restart_of_both_servers(
    upgraded: Variables, postgresql: PostgreSQL, rabbitmq: RabbitMQ
) -> None:
    """A stray message goes through broker, executor and database: it shows that all of them work."""
    broker, database = upgraded["ATTUNE__MESSAGE_QUEUE__URL"], upgraded["ATTUNE__DATABASE__URL"]
    bodies = [b"before", b"after the database", b"after the broker"]
    with AttuneProcess("executor", **upgraded) as process:
        process.wait_for_event("Ready.")
        for body, hurt in zip(bodies, [None, postgresql, rabbitmq], strict=True):
            if hurt is not None:
                hurt.kill()
                hurt.start()
            asyncio.run(publish_stray(broker, body))
            process.wait_for_event("Kept a dead letter.")
        letters = asyncio.run(kept_letters(database))
        assert [letter["body"] for letter in letters] == bodies
        assert {letter["reason"] for letter in letters} == {"unrouted"}
        assert process.stop() == 0


def test_the_api_tells_when_the_database_is_away(
    upgraded: Variables, postgresql: PostgreSQL, processes: ExitStack
) -> None:
    port = str(free_port())
    process = processes.enter_context(
        AttuneProcess("api", **{**upgraded, "ATTUNE__SERVER__PORT": port})
    )
    process.wait_for_event("Ready.")
    assert status_of(port, "/health/ready")[0] == 200
    postgresql.stop()
    status, body = status_of(port, "/health/ready")
    assert status == 503
    assert "away" in body["database"]
    assert status_of(port, "/health")[0] == 200
    postgresql.start()
    assert status_of(port, "/health/detailed")[0] == 200
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


def status_of(port: str, path: str) -> tuple[int, dict[str, str]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_requests_run_to_their_end_while_no_executor_is_up(
    postgresql_url: str, rabbitmq_url: str, tmp_path: Path
) -> None:
    with whole(tmp_path, postgresql_url, rabbitmq_url) as installation:
        installation.roles(executors=0, workers=1)
        client = installation.client()
        waiting = client.executions.execute_many([{"action_ref": "core.noop"}] * 30)
        for one in waiting:
            assert client.executions.wait(one.id, timeout=60).status == "completed"
