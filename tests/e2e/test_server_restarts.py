"""PostgreSQL, RabbitMQ and Redis are killed and started again under load: work goes on by itself, and nothing is lost."""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import Server
from harness.waiting import wait_until
from tests.e2e.installation import Installation, production
from tests.e2e.ledger import NOTHING, Ledger, PastAttempt, Rest, Run
from tests.e2e.load import Load, journalling, starts
from tests.e2e.loops import Loops
from tests.e2e.usage import Usage, usage

BETWEEN: Final = 3.0  # seconds of load before and after each restart
SERVERS: Final = ("postgresql", "rabbitmq", "redis")
RESUMED: Final = 10.0  # seconds after a server answers again
SETTINGS: Final = {
    "ATTUNE__EXECUTOR__QUEUE__BACKEND": "redis",
    "ATTUNE__EXECUTOR__HEALTH_CHECK_INTERVAL": "2",
    "ATTUNE__EXECUTOR__TIMEOUT_CHECK_INTERVAL": "1",
    "ATTUNE__WORKER__HEARTBEAT_INTERVAL": "2",
    "ATTUNE__WORKER__CAPACITY": "50",
    "ATTUNE__DATABASE__MAX_CONNECTIONS": "5",
}

pytestmark = pytest.mark.timeout(300)


@dataclass
class Story:
    """What happened under load. `back` has when each server answered again."""

    installation: Installation
    folder: Path
    servers: dict[str, Server]
    loops: Loops
    load: Load
    back: dict[str, datetime] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    past: list[PastAttempt] = field(default_factory=list)
    rest: Rest = NOTHING
    violation: str | None = None

    def restart(self, name: str) -> datetime:
        """kill -9, and started again at once; when it answered again."""
        server = self.servers[name]
        server.kill()
        server.start()
        return datetime.now(UTC)


@pytest.fixture(scope="module")
def story(
    postgresql: PostgreSQL,
    rabbitmq: RabbitMQ,
    redis_server: Redis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("restarts")
    redis_server.flush()
    url, broker = postgresql.create_database(), rabbitmq.create_vhost()
    with production(folder, url, broker) as installation:
        installation.variables |= {**SETTINGS, "ATTUNE__REDIS__URL": redis_server.url}
        installation.roles()
        installation.client().packs.upload(journalling(folder))
        rows = partial(postgresql.execute, url=url)
        loops = Loops(installation, rows, partial(_keys, redis_server), rabbitmq, broker)
        load = Load(installation.client)
        servers = dict(zip(SERVERS, (postgresql, rabbitmq, redis_server), strict=True))
        told = Story(installation, folder, servers, loops, load)
        _live_through(told)
        _read(told, url)
        yield told
    for server in servers.values():
        server.ensure_running()
    rabbitmq.delete_vhost(broker)
    postgresql.drop_database(url)


def _live_through(story: Story) -> None:
    with story.load as load:
        for name in SERVERS:
            load.flow(BETWEEN)
            story.back[name] = story.restart(name)
        load.flow(BETWEEN)
        load.finish()


def _read(story: Story, url: str) -> None:
    """When nothing waits and nothing runs any more."""
    with Ledger(url) as ledger:
        try:
            wait_until(lambda: ledger.rest() == NOTHING, timeout=90, interval=0.2)
        finally:
            story.rest = ledger.rest()
        story.runs, story.past = ledger.runs(), ledger.past_attempts()
        violation = ledger.proof().violation
        story.violation = None if violation is None else violation.text


def _keys(redis: Redis) -> int:
    with socket.create_connection(("127.0.0.1", redis.port), timeout=10) as connection:
        connection.sendall(b"DBSIZE\r\n")
        return int(connection.makefile().readline().strip().lstrip(":"))


def test_every_request_became_exactly_one_execution_and_completed(story: Story) -> None:
    assert len(story.load.acknowledged) == story.load.total
    assert {run.key: run.id for run in story.runs} == story.load.acknowledged
    assert len(story.runs) == story.load.total
    assert Counter(run.status for run in story.runs) == {"completed": story.load.total}


def test_a_request_is_only_ever_refused_because_a_server_is_away(story: Story) -> None:
    assert set(story.load.faults) <= {"503 database_unavailable"}, story.load.faults


def test_nothing_ran_twice_without_a_second_attempt_on_record(story: Story) -> None:
    began, past = starts(story.folder), Counter(one.execution for one in story.past)
    assert began, "nothing was written down"
    for run in story.runs:
        assert run.attempt == past[run.id] + 1, run
        assert began[run.id] <= run.attempt, run
        assert began[run.id] > 0 or run.action_ref == "core.noop", run


def test_no_slot_is_held_and_the_log_proves_every_decision(story: Story) -> None:
    assert story.rest == NOTHING
    assert story.violation is None


@pytest.mark.parametrize("name", SERVERS)
def test_work_resumed_by_itself_within_seconds(story: Story, name: str) -> None:
    """Measured by those that were asked for before the server answered again, and by those that came after."""
    back = story.back[name]
    ends = sorted((run.ended_at - back).total_seconds() for run in story.runs)
    after = [seconds for seconds in ends if seconds > 0]
    took = f"{name}: the first end after {after[0]:.2f} s, the hundredth after {after[99]:.2f} s"
    print(took)  # noqa: T201 - the measurement, for whoever reads along
    assert after[99] < RESUMED


@pytest.mark.parametrize("name", SERVERS)
def test_every_loop_works_again_after_a_restart(story: Story, name: str) -> None:
    story.restart(name)
    story.loops.all_work()


def test_processes_that_live_on_grow_neither_in_memory_nor_in_open_files(story: Story) -> None:
    before = _usage(story)
    for name in ("postgresql", "redis", "postgresql", "redis", "postgresql", "rabbitmq"):
        story.restart(name)
        _one_runs(story)
    for name, now in _usage(story).items():
        assert now.files <= before[name].files + 5, (name, before[name], now)
        assert now.megabytes <= before[name].megabytes + 20, (name, before[name], now)


def _usage(story: Story) -> dict[str, Usage]:
    return {name: usage(process.pid) for name, process in story.installation.processes.items()}


def _one_runs(story: Story) -> None:
    client = story.installation.client()
    key = f"after-{time.monotonic_ns()}"
    asked = client.executions.execute("load.ghostly", idempotency_key=key)
    assert client.executions.wait(asked.id, timeout=60).status == "completed"
