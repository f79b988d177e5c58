"""SIGTERM to each role in turn, under load: it ends in time, what it had goes on, and nobody notices."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from attune.client.requests import ExecutionRequest
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.server import Server
from harness.waiting import wait_until
from tests.e2e.attune_process import AttuneProcess
from tests.e2e.installation import Installation, production
from tests.e2e.ledger import NOTHING, Ledger, Run
from tests.e2e.load import Load, journalling, starts
from tests.e2e.usage import Usage, usage

SECONDS: Final = 20.0
SHUTDOWN: Final = 20.0
GRACE: Final = SHUTDOWN + 10.0
ON_TIME: Final = 5.0  # for what ends at once, on a machine that is busy
# Who goes at which share of the load; the workers at the end one after the other, as in a rolling restart.
STOPS: Final = (
    (0.15, "worker-1"),
    (0.3, "executor-1"),
    (0.5, "api"),
    (0.7, "worker-1"),
    (0.7, "worker-2"),
)
SLOW: Final = 4
COMPLAINTS: Final = ("unexpected EOF", "reset by peer", "closed TCP connection", "broken pipe")

pytestmark = pytest.mark.timeout(300)


class Stop(NamedTuple):
    name: str
    code: int
    seconds: float


class RollingInstallation(Installation):
    """Its processes go and come again under their names."""

    def stop(self, name: str) -> Stop:
        began = time.monotonic()
        code = self.processes[name].stop()
        return Stop(name, code, time.monotonic() - began)

    def start(self, name: str) -> AttuneProcess:
        role = name.partition("-")[0]
        process = self.start_worker(name) if role == "worker" else self._start(name, role)
        process.wait_for_event("Ready.")
        return process


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
    variables |= {"ATTUNE__WORKER__CAPACITY": "20", "ATTUNE__DATABASE__MAX_CONNECTIONS": "5"}
    variables |= {"ATTUNE__WORKER__SHUTDOWN_TIMEOUT": f"{SHUTDOWN:g}"}
    with RollingInstallation(folder, **variables) as installation:
        installation.roles()
        installation.client().packs.upload(journalling(folder))
        told = Story(installation, folder, Load(installation.client, SECONDS))
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
        for share, name in STOPS:
            wait_until(partial(load.reached, share), timeout=60, what=f"{share:.0%} acknowledged")
            story.stayed.append(usage(watched))
            if name.startswith("worker"):
                _occupy(story)
            story.stops.append(installation.stop(name))
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
    assert [(stop.name, stop.code) for stop in story.stops] == [(name, 0) for _, name in STOPS]
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
    wait_until(lambda: not _left_of(made.id), timeout=ON_TIME, what="its processes are gone")


@pytest.mark.parametrize("name", ["executor-1", "api"])
def test_a_second_signal_ends_one_at_once_that_waits_for_its_database(
    story: Story, postgresql: PostgreSQL, name: str
) -> None:
    postgresql.pause()
    try:
        _ends_at_the_second_signal(story.installation.processes[name])
    finally:
        postgresql.resume()


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


def _left_of(execution: int) -> list[str]:
    """Processes of an execution, by the variable that each of them has."""
    mark = f"ATTUNE_EXEC_ID={execution}".encode()
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in place.read_bytes().split(b"\0"):
                found.append(place.parent.name)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found
