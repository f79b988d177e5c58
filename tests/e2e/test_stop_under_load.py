"""SIGTERM to each role in turn, under load: it ends in time, what it had goes on, and nobody notices."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from attune.client.requests import ExecutionRequest
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.server import Server
from harness.waiting import wait_until
from tests.e2e.attune_process import AttuneProcess
from tests.e2e.installation import production
from tests.e2e.ledger import NOTHING, Ledger, Run
from tests.e2e.load import Load, journalling, starts
from tests.e2e.rolling import RollingInstallation, Stop
from tests.e2e.usage import Usage, processes_of, usage

SHUTDOWN: Final = 20.0
GRACE: Final = SHUTDOWN + 10.0
SOON: Final = 8.0  # for two interpreters to end, too
ON_TIME: Final = 5.0  # for what ends at once, on a machine that is busy
BEFORE: Final = (
    2.0  # seconds of load; it goes on while somebody stops, and rests while that one starts again
)
# The workers at the end one after the other, as in a rolling restart.
STOPS: Final = ("worker-1", "executor-1", "api", "worker-1", "worker-2")
SLOW: Final = 4
COMPLAINTS: Final = ("unexpected EOF", "reset by peer", "closed TCP connection", "broken pipe")

pytestmark = pytest.mark.timeout(300)


@dataclass
class Story:
    """What happened under load. `stayed` is what the process that lived through it used before and after it."""

    installation: RollingInstallation
    folder: Path
    load: Load
    stops: list[Stop] = field(default_factory=list)
    slow: list[ExecutionRequest] = field(default_factory=list)
    stayed: list[Usage] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    violation: str | None = None


@pytest.fixture(scope="module")
def story(
    postgresql: PostgreSQL, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("stops")
    url, broker = postgresql.create_database(), rabbitmq.create_vhost()
    variables = production(folder, url, broker).variables
    variables |= {"ATTUNE__WORKER__CAPACITY": "50", "ATTUNE__DATABASE__MAX_CONNECTIONS": "5"}
    variables |= {"ATTUNE__WORKER__SHUTDOWN_TIMEOUT": f"{SHUTDOWN:g}"}
    with RollingInstallation(folder, **variables) as installation:
        installation.roles()
        installation.client().packs.upload(journalling(folder))
        told = Story(installation, folder, Load(installation.client))
        heard = {server: _log(server) for server in (postgresql, rabbitmq)}
        _live_through(told)
        _read(told, url)
        for server, before in heard.items():
            told.complaints += _complaints(_log(server).removeprefix(before))
        yield told
    postgresql.ensure_running()
    rabbitmq.delete_vhost(broker)
    postgresql.drop_database(url)


def _live_through(story: Story) -> None:
    installation, watched = story.installation, story.installation.processes["executor-2"].pid
    with story.load as load:
        for name in STOPS:
            load.resume()
            load.flow(BEFORE)
            story.stayed.append(usage(watched))
            if name.startswith("worker"):
                _occupy(story)
            story.stops.append(installation.stop(name))
            load.pause()
            installation.start(name)
        load.finish()
    story.stayed.append(usage(watched))


def _occupy(story: Story) -> None:
    """Something that takes its time is under way on both workers."""
    first = len(story.slow)
    more: list[ExecutionRequest] = [
        {"action_ref": "load.slow", "idempotency_key": f"load-slow-{number}", "priority": "high"}
        for number in range(first, first + SLOW)
    ]
    made = story.installation.client().executions.execute_many(more)
    story.slow += more
    wait_until(lambda: all(starts(story.folder)[one.id] for one in made), timeout=60)


def _read(story: Story, url: str) -> None:
    with Ledger(url) as ledger:
        wait_until(lambda: ledger.rest() == NOTHING, timeout=90, interval=0.2, what="all is over")
        story.runs = ledger.runs()
        violation = ledger.proof().violation
        story.violation = None if violation is None else violation.text


def _log(server: Server) -> str:
    return (server.directory / "server.log").read_text(errors="replace")


def _complaints(log: str) -> list[str]:
    return [line for line in log.splitlines() if any(word in line for word in COMPLAINTS)]


def test_each_ends_with_code_0_within_its_grace(story: Story) -> None:
    assert [(stop.name, stop.code) for stop in story.stops] == [(name, 0) for name in STOPS]
    assert max(stop.seconds for stop in story.stops) < GRACE, story.stops


def test_nothing_is_lost_and_nothing_runs_twice(story: Story) -> None:
    """What runs is finished, and what has not begun is handed back: so each begins once."""
    total = story.load.total + len(story.slow)
    assert len(story.load.acknowledged) == story.load.total
    assert Counter(run.status for run in story.runs) == {"completed": total}
    assert {run.key: run.id for run in story.runs}.items() >= story.load.acknowledged.items()
    began = starts(story.folder)
    assert [run for run in story.runs if began[run.id] != (run.action_ref != "core.noop")] == []


def test_the_log_proves_every_decision(story: Story) -> None:
    assert story.violation is None


def test_the_servers_see_every_connection_closed_in_good_order(story: Story) -> None:
    assert story.complaints == []


def test_a_process_that_stays_grows_neither_in_memory_nor_in_open_files(story: Story) -> None:
    """From the first stop on, when it has been under load for a while."""
    first, last = story.stayed[0], story.stayed[-1]
    assert last.files <= first.files + 5, story.stayed
    assert last.megabytes <= first.megabytes + 20, story.stayed


def test_a_second_signal_ends_a_worker_at_once_with_all_that_it_runs(story: Story) -> None:
    installation = story.installation
    made = installation.client().executions.execute("load.endless")
    wait_until(lambda: starts(story.folder)[made.id] == 1, timeout=60)
    worker = next(name for name in ("worker-1", "worker-2") if _runs(installation, name))
    _ends_at_the_second_signal(installation.processes[worker])
    wait_until(lambda: not processes_of(made.id), timeout=ON_TIME, what="its processes are gone")


@pytest.mark.parametrize("name", ["executor-1", "api"])
def test_a_second_signal_ends_one_at_once_that_waits_for_its_database(
    story: Story, postgresql: PostgreSQL, name: str
) -> None:
    postgresql.pause()
    try:
        _ends_at_the_second_signal(story.installation.processes[name])
    finally:
        postgresql.resume()


def test_those_that_are_left_stop_in_time_while_the_broker_is_away(
    story: Story, rabbitmq: RabbitMQ
) -> None:
    """A message only hurries, so nobody waits for one that cannot leave."""
    processes = story.installation.processes
    left = [each for each in processes.values() if Path("/proc", str(each.pid)).exists()]
    assert len(left) == 2
    rabbitmq.kill()
    try:
        began = time.monotonic()
        for process in left:
            process.signal(signal.SIGTERM)
        assert [process.wait() for process in left] == [0, 0]
        assert time.monotonic() - began < SOON
    finally:
        rabbitmq.start()


def _ends_at_the_second_signal(process: AttuneProcess) -> None:
    process.signal(signal.SIGTERM)
    process.wait_for_event("Asked to stop.")
    began = time.monotonic()
    process.signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    assert time.monotonic() - began < ON_TIME


def _runs(installation: RollingInstallation, name: str) -> bool:
    shown = installation.client().workers.executions(name)
    return any(one.action_ref == "load.endless" for one in shown.items)
