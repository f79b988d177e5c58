"""An installation whose processes are killed while it works, and what its rows tell afterwards."""

import asyncio
import random
import signal
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import msgspec

from attune.client.requests import ExecutionRequest
from attune.kernel.clock import SystemClock
from attune.pipeline.queues.decisions import Decision, Joined
from attune.store.database import Tx
from attune.store.postgresql import PostgreSQLDatabase
from tests.e2e.attune_process import AttuneProcess
from tests.e2e.installation import Installation

_RUNS: Final = """
    SELECT x.id, x.action_ref, x.config ->> 'host' AS host, x.status, x.started_at, x.updated AS ended_at
      FROM execution x ORDER BY x.id
"""
_DECISIONS: Final = """
    SELECT lane, number, at, active_before, active_after, queue_length, max_concurrent, reason, items
      FROM decision ORDER BY lane, number
"""
_ENDED: Final = "SELECT coalesce(sum(total_completed), 0)::bigint FROM lane"
_REST: Final = """
    SELECT (SELECT count(*) FROM entry) AS entries,
           (SELECT count(*) FROM lane) AS lanes,
           (SELECT coalesce(sum(active_count), 0)::bigint FROM lane) AS active,
           (SELECT coalesce(sum(queue_length), 0)::bigint FROM lane) AS waiting,
           (SELECT coalesce(sum(total_enqueued), 0)::bigint FROM lane) AS enqueued,
           (SELECT coalesce(sum(total_completed), 0)::bigint FROM lane) AS completed,
           (SELECT coalesce(sum(active_count), 0)::bigint FROM pool) AS pooled
"""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as its row tells it; `started_at` is null for one that no worker began."""

    id: int
    action_ref: str
    host: str
    status: str
    started_at: datetime | None
    ended_at: datetime


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What the queues hold, and what went through them."""

    entries: int
    lanes: int
    active: int
    waiting: int
    enqueued: int
    completed: int
    pooled: int


class Books(msgspec.Struct, frozen=True):
    runs: list[Run]
    decisions: list[Decision]
    rest: Rest


class MortalInstallation(Installation):
    """Its executors and workers can be killed; `reborn` are those that came after one that was."""

    def __init__(self, folder: Path, **variables: str) -> None:
        super().__init__(folder, **variables)
        self.reborn: dict[str, AttuneProcess] = {}

    def kill_and_restart(self, name: str) -> None:
        """kill -9, and another one of the same name at once."""
        process = self.processes[name]
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        if name.startswith("worker"):
            self.reborn[name] = self.start_worker(name)
        else:
            self.reborn[name] = self._start(name, "executor")

    def wait_for_reborn(self) -> None:
        for process in self.reborn.values():
            process.wait_for_event("Ready.")


def limited(folder: Path, limits: range) -> Path:
    """A pack with one action for each limit, which holds for each host by itself."""
    files = {"pack.yaml": "ref: chaos\nlabel: Chaos\nversion: 1.0.0\n"}
    for limit in limits:
        files[f"actions/work_{limit}.yaml"] = (
            f"ref: chaos.work_{limit}\nlabel: Work\nrunner_type: shell\nentry_point: work.sh\n"
            "parameters:\n  host: {type: string, required: true}\n"
        )
        files[f"policies/work_{limit}.yaml"] = (
            f"ref: chaos.limit_{limit}\nname: {limit} on each host\naction_ref: chaos.work_{limit}\n"
            f"concurrency: {{limit: {limit}, method: enqueue, parameters: [host]}}\n"
        )
    files["actions/work.sh"] = "exit 0\n"
    for name, text in files.items():
        place = folder / "chaos" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / "chaos"


def requests(limits: range, hosts: int, each: int, source: random.Random) -> list[ExecutionRequest]:
    """So many for each lane, shuffled. Bands are mixed where more than one may run."""
    found: list[ExecutionRequest] = []
    for limit in limits:
        for host in range(hosts):
            for _ in range(each):
                priority = source.choice(["high", "normal", "low"]) if limit > 1 else "normal"
                found.append(
                    {
                        "action_ref": f"chaos.work_{limit}",
                        "parameters": {"host": f"host-{host}"},
                        "priority": priority,
                    }
                )
    source.shuffle(found)
    return found


class Watch:
    """Reads the rows beside the processes that write them, over one connection."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._database = PostgreSQLDatabase(url, SystemClock(), random.Random(1), max_connections=1)

    def __enter__(self) -> Self:
        self._runner.run(self._database.open())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._database.close())
        self._runner.close()

    def ended(self) -> int:
        """How many executions have left the lanes so far."""
        return self._runner.run(self._database.read(_ended))

    def books(self) -> Books:
        """Everything at one moment."""
        return self._runner.run(self._database.read(_books))


async def _ended(tx: Tx) -> int:
    return await tx.one(int, _ENDED)


async def _books(tx: Tx) -> Books:
    return Books(
        await tx.all(Run, _RUNS), await tx.all(Decision, _DECISIONS), await tx.one(Rest, _REST)
    )


def most_at_once(runs: list[Run]) -> int:
    """How many of these ran at the same moment, by their own times."""
    edges: list[tuple[datetime, int]] = []
    for run in runs:
        if run.started_at is not None:
            edges += [(run.started_at, 1), (run.ended_at, -1)]
    most = now = 0
    for _, change in sorted(edges):
        now += change
        most = max(most, now)
    return most


def lanes_of(runs: list[Run]) -> dict[tuple[str, str], list[Run]]:
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.action_ref, run.host), []).append(run)
    return found


def sequences(decisions: list[Decision]) -> dict[int, int]:
    """The place of each execution in its lane, from the log."""
    return {
        item.execution: item.sequence
        for decision in decisions
        for item in decision.items
        if isinstance(item, Joined)
    }
