"""An installation whose every process reaches its servers by links of its own, which can break; and what must hold then."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

import attune
from attune.client.worker_models import Worker
from harness.postgresql import PostgreSQL
from harness.proxy import FaultProxy
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_until
from tests.e2e.attune_process import AttuneProcess, run_attune
from tests.e2e.installation import Installation, production
from tests.e2e.steady_flow import Journal, Outcome, OutcomeWatch, Stream

Server = Literal["database", "broker"]
Fault = Literal["cut", "black hole"]

BEAT: Final = 1.0
LEASE: Final = 3 * BEAT  # the silence after which a worker counts as lost
MOMENT: Final = 0.5  # for which a link is broken, or
LONG: Final = LEASE + 1.0
SECONDS: Final = 20.0  # within which work goes on by itself; the machine is shared
_SOME: Final = 6
_URLS: Final[dict[Server, str]] = {
    "database": "ATTUNE__DATABASE__URL",
    "broker": "ATTUNE__MESSAGE_QUEUE__URL",
}
_RHYTHM: Final = {
    "ATTUNE__WORKER__HEARTBEAT_INTERVAL": f"{BEAT:g}",
    "ATTUNE__EXECUTOR__HEALTH_CHECK_INTERVAL": "1",
    "ATTUNE__MESSAGE_QUEUE__HEARTBEAT": "1",
}


class PartitionedInstallation(Installation):
    """`links` has the proxies of each process by its name."""

    def __init__(self, folder: Path, **variables: str) -> None:
        super().__init__(folder, **{**variables, **_RHYTHM})
        self.links: dict[str, dict[Server, FaultProxy]] = {}

    def _start(self, name: str, *arguments: str, **variables: str) -> AttuneProcess:
        links = self.links[name] = {
            server: self._stack.enter_context(FaultProxy.to(self.variables[variable]))
            for server, variable in _URLS.items()
        }
        through = {
            variable: links[server].url_for(self.variables[variable])
            for server, variable in _URLS.items()
        }
        return super()._start(name, *arguments, **variables, **through)

    @contextmanager
    def broken(self, name: str, server: Server, fault: Fault) -> Iterator[None]:
        """Between this process and this server, until the block is left."""
        link = self.links[name][server]
        if fault == "cut":
            link.cut()
        else:
            link.stall()
        try:
            yield
        finally:
            link.heal()


@dataclass
class Scene:
    """`ended` is how each execution ended, as it was first seen."""

    installation: PartitionedInstallation
    client: attune.Client
    watch: OutcomeWatch
    journal: Journal
    ended: dict[int, Outcome] = field(default_factory=dict)

    def worker(self, name: str) -> Worker:
        return self.client.workers.get(name)

    def outcome(self, execution: int) -> Outcome:
        return self.watch.outcomes([execution])[execution]

    @contextmanager
    def cordoned(self, name: str) -> Iterator[None]:
        """Whatever is asked for in this block goes to others."""
        self.client.workers.cordon(name)
        try:
            yield
        finally:
            self.client.workers.uncordon(name)

    def begun(self, action_ref: str, *, on: str, apart_from: str) -> int:
        """An execution that runs on this worker, once it is there to take one."""
        wait_until(
            lambda: self.worker(on).status == "active", timeout=SECONDS, what=f"{on} is there"
        )
        with self.cordoned(apart_from):
            found = self.client.executions.execute(action_ref).id
            wait_until(lambda: self.outcome(found).status == "running", timeout=SECONDS)
        return found

    def break_and_heal(self, name: str, server: Server, fault: Fault, seconds: float) -> None:
        """Under a steady flow, which ends well; to no process is a broken link more than a warning."""
        with Stream(self.client) as stream:
            wait_for_more(stream)
            with self.installation.broken(name, server, fault):
                time.sleep(seconds)
            wait_for_more(stream)
        self.check_ended(stream.accepted)
        assert self._faults_of_ours() == []

    def has_told(self, name: str, sentence: str, execution: int) -> bool:
        """Whether the log of this process has the sentence about this execution."""
        lines = [line for line in self.installation.processes[name].log if sentence in line]
        told = (msgspec.json.decode(line) for line in lines)
        return any(
            execution in (line.get("execution_id"), *line.get("executions", ())) for line in told
        )

    def check_ended(self, ids: list[int], *, at_rest: bool = True) -> None:
        """All of these end within seconds, as they should, and those that ended before have not changed.

        `at_rest`: there are no others, so nothing is held.
        """
        wait_until(lambda: self._all_ended(ids), timeout=SECONDS, interval=0.1, what="all end")
        assert len(ids) == len(set(ids)), "a repeated request was accepted twice"
        runs = self.journal.runs()
        for one in self.watch.outcomes(ids).values():
            _check_runs(one, runs[one.id])
            self.ended[one.id] = one
        now = self.watch.outcomes(self.ended)
        assert [one for one in self.ended.values() if now[one.id] != one] == []
        ends = self.watch.ends()
        assert {each: ends[each] for each in self.ended} == dict.fromkeys(self.ended, 1)
        assert not at_rest or self.watch.held() == 0

    def _all_ended(self, ids: list[int]) -> bool:
        found = self.watch.outcomes(ids)
        return found.keys() == set(ids) and all(one.is_terminal for one in found.values())

    def check_log(self) -> None:
        """By `attune queue verify`, after some more executions."""
        with Stream(self.client) as stream:
            wait_for_more(stream)
        self.check_ended(stream.accepted)
        address, token = self.installation.address, self.installation.token
        done = run_attune("queue", "verify", ATTUNE_URL=address, ATTUNE_TOKEN=token)
        assert done.returncode == 0, done.stdout + done.stderr

    def _faults_of_ours(self) -> list[str]:
        """What the processes have logged beyond warnings."""
        lines = (line for process in self.installation.processes.values() for line in process.log)
        return [line for line in lines if not _is_expected(line)]


def _check_runs(one: Outcome, runs: int) -> None:
    assert one.status in ("completed", "abandoned", "cancelled"), one
    assert runs <= one.attempt, one
    assert runs >= (one.status == "completed"), one
    assert one.action_ref != "net.once" or runs <= 1, one


def _is_expected(line: str) -> bool:
    return line.startswith("{") and msgspec.json.decode(line)["level"] in ("info", "warning")


def wait_for_more(stream: Stream) -> None:
    goal = len(stream.accepted) + _SOME
    wait_until(lambda: len(stream.accepted) >= goal, timeout=SECONDS, what="more are accepted")


@contextmanager
def scene_of(postgresql: PostgreSQL, rabbitmq: RabbitMQ, folder: Path) -> Iterator[Scene]:
    """An API, two executors and two workers that are there."""
    url, broker = postgresql.create_database(), rabbitmq.create_vhost()
    variables = production(folder / "data", url, broker).variables
    with PartitionedInstallation(folder / "data", **variables) as installation:
        installation.roles(executors=2, workers=2)
        client, journal = installation.client(), Journal(folder)
        client.packs.upload(journal.pack(folder))
        with OutcomeWatch(url) as watch:
            yield Scene(installation, client, watch, journal)
    rabbitmq.delete_vhost(broker)
    postgresql.drop_database(url)
