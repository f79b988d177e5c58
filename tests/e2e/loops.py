"""Every loop of an installation, each shown to work by an effect that nothing else has.

Ghosts are workers that are rows and nothing else. What is handed to one waits until a monitor finds it, and the message
about it finds no queue.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from attune.client import Client
from attune.client.requests import RetryRules
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_until
from tests.e2e.installation import Installation

_LONG: Final = 90.0
# An executor's pass that no wake hurries comes every ten seconds; in less time than that two executors make two.
_WITHOUT_WAKES: Final = 9.0
_MORE_THAN_PASSES: Final = 3
_EXECUTORS: Final = 2
_TOLD: Final = {"requested", "scheduled", "completed"}  # by the API, an executor, a worker

_GHOST: Final = """
    INSERT INTO attune.worker (name, worker_type, worker_role, status, capacity, supported_runtimes, labels, taints,
           incarnation, last_heartbeat, cordoned, created, updated)
    SELECT '{name}', worker_type, worker_role, 'active', 10, supported_runtimes, '{{"ghost": "{name}"}}',
           '[{{"key": "ghost", "effect": "no_schedule"}}]', 'ghost', now() + interval '1 hour', false, now(), now()
      FROM attune.worker WHERE name = 'worker-1'
"""
# The first is past its lease, the second past its deadline, the third worker-1's without a word to it; the ghost that
# has the fourth falls silent; the fifth has waited for too long; an event is there that no message tells of.
_FAULTS: Final = """
    UPDATE attune.entry SET lease_expires_at = now() - interval '1 second' WHERE execution = {0};
    UPDATE attune.execution SET status = 'running', started_at = now() - interval '1 hour', timeout_seconds = 1
     WHERE id = {1};
    UPDATE attune.entry SET worker = (SELECT id FROM attune.worker WHERE name = 'worker-1') WHERE execution = {2};
    UPDATE attune.worker SET last_heartbeat = now() - interval '1 hour' WHERE name = 'silent-{round}';
    UPDATE attune.entry SET enqueued_at = now() - interval '2 hours' WHERE execution = {4};
    INSERT INTO attune.event (trigger, trigger_ref, payload, created, updated)
    SELECT id, ref, '{{}}', now(), now() FROM attune.trigger WHERE ref = 'core.webhook';
"""
_MISSING: Final = """
    WITH status AS (SELECT id, status, result FROM attune.execution)
    SELECT name FROM (VALUES
      ('execution timeout monitor', (SELECT result::text LIKE '%execution_timeout_monitor%' FROM status WHERE id = {0})),
      ('run deadline monitor', (SELECT status = 'timeout' FROM status WHERE id = {1})),
      ('worker''s look', (SELECT status = 'completed' FROM status WHERE id = {2})),
      ('lost workers', (SELECT status = 'failed' FROM status WHERE id = {3})),
      ('queue timeout', (SELECT result::text LIKE '%queue_timeout_seconds%' FROM status WHERE id = {4})),
      ('gate keeper', (SELECT bool_and(status = 'completed') FROM status WHERE id IN ({rated}))),
      ('adaptive limits', EXISTS (SELECT 1 FROM attune.setting WHERE name LIKE 'adaptive.%' AND updated > '{since}')),
      ('fallback', NOT EXISTS (SELECT 1 FROM attune.event WHERE processed_at IS NULL)),
      ('alerts', EXISTS (SELECT 1 FROM attune.event WHERE trigger_ref = 'core.alert'
                          AND payload::text LIKE '%silent-{round}%')),
      ('dead-letter keeper', EXISTS (SELECT 1 FROM attune.dead_letter WHERE died_at > '{since}')),
      ('heartbeats', (SELECT bool_and(last_heartbeat > '{since}'::timestamptz + interval '3 seconds')
                        FROM attune.worker WHERE name LIKE 'worker-%')),
      ('probes and answers', (SELECT bool_and(answered_at > '{since}') FROM attune.worker WHERE name LIKE 'worker-%'))
    ) AS effect (name, seen) WHERE seen IS NOT TRUE
"""


class Loops:
    """`rows` runs a statement on the database and gives its rows as text; `mirrored` says how much Redis holds."""

    def __init__(
        self,
        installation: Installation,
        rows: Callable[[str], str],
        mirrored: Callable[[], int],
        rabbitmq: RabbitMQ,
        broker: str,
    ) -> None:
        self._address = installation.address
        self._client: Client = installation.client()
        self._token = installation.token
        self._rows = rows
        self._mirrored = mirrored
        self._consumers = partial(_consumers, rabbitmq, broker)
        self._round = 0
        self._client.queues.pause("load.held")

    def all_work(self) -> None:
        """Return when every effect was seen."""
        self._round += 1
        wait_until(self._all_healthy, timeout=_LONG, what="all processes are well")
        wait_until(self._all_are_read, timeout=_LONG, what="every queue is read by all its readers")
        self._announcers_are_heard()
        self._wakes_are_heard()
        self._duties_find_their_work()

    def _all_healthy(self) -> bool:
        ports = self._rows("SELECT port FROM attune.worker WHERE name LIKE 'worker-%'").split()
        places = [f"{self._address}/health/ready"]
        places += [f"http://127.0.0.1:{port}/health" for port in ports]
        return len(places) == 3 and all(_is_well(place) for place in places)

    def _all_are_read(self) -> bool:
        return all(has == _readers(name) for name, has in self._consumers().items())

    def _announcers_are_heard(self) -> None:
        """A stream tells what each role says of one execution, so each speaks and the API listens."""
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self._address}/api/v1/executions/stream",
            headers={"Authorization": f"Bearer {self._token}"},
        )
        told: set[str] = set()
        with urllib.request.urlopen(request, timeout=_LONG) as stream:  # noqa: S310
            assert stream.readline().startswith(b":")
            ours = self._ask("core.noop")[0]
            while not told >= _TOLD:
                line = stream.readline()
                assert line, f"the stream ended, and told only {told}"
                if line.startswith(b"data: ") and (event := json.loads(line[6:]))["id"] == ours:
                    told.add(event["status"])

    def _wakes_are_heard(self) -> None:
        """One retry after the other, in less time than passes without wakes would take."""
        began = time.monotonic()
        retry: RetryRules = {"delay": 0.1, "backoff": "constant", "jitter": 0}
        for _ in range(_MORE_THAN_PASSES):
            asked = self._client.executions.execute("load.twice", max_retries=1, retry=retry)
            ended = self._client.executions.wait(asked.id, timeout=_LONG)
            assert ended.status == "completed", ended
        assert time.monotonic() - began < _WITHOUT_WAKES, "no wake was heard"

    def _duties_find_their_work(self) -> None:
        since = self._rows("SELECT now()")
        ids = [*self._haunted("idle", 3), *self._haunted("silent", 1), *self._ask("load.held")]
        wait_until(lambda: self._mirrored() > 0, timeout=_LONG, what="Redis holds who waits")
        values: dict[str, Any] = {"round": self._round, "since": since}
        values["rated"] = ", ".join(str(each) for each in self._ask("load.rated", 3))
        self._ask("load.followed", 12)
        self._rows(_FAULTS.format(*ids, **values))
        missing = _MISSING.format(*ids, **values)
        try:
            wait_until(lambda: not self._rows(missing), timeout=_LONG, interval=0.2)
        except AssertionError:
            raise AssertionError(f"no effect of: {self._rows(missing)}") from None
        self._rows(
            f"UPDATE attune.worker SET status = 'inactive' WHERE name = 'idle-{self._round}'"
        )

    def _haunted(self, name: str, count: int) -> list[int]:
        """So many executions in the hands of a new ghost."""
        ghost = f"{name}-{self._round}"
        self._rows(_GHOST.format(name=ghost))
        toleration = {"key": "ghost", "operator": "exists"}
        ids = self._ask(
            "load.ghostly",
            count,
            worker_selector={"ghost": ghost},
            worker_tolerations=[toleration],
        )
        of_these = f"execution IN ({', '.join(str(each) for each in ids)})"
        handed = f"SELECT count(*) FROM attune.entry WHERE state = 'handed' AND {of_these}"
        wait_until(
            lambda: int(self._rows(handed)) == count, timeout=_LONG, what=f"{ghost} has them"
        )
        return ids

    def _ask(self, action_ref: str, count: int = 1, **options: Any) -> list[int]:
        wanted: list[Any] = [{"action_ref": action_ref, **options}] * count
        return [one.id for one in self._client.executions.execute_many(wanted)]


def _consumers(rabbitmq: RabbitMQ, broker: str) -> dict[str, int]:
    """Of the queues that stay; one that belongs to a connection has another name each time."""
    queues = rabbitmq.queues(broker)
    return {
        each["name"]: each["consumers"] for each in queues if "broadcast.api" not in each["name"]
    }


def _readers(queue: str) -> int:
    if queue.startswith("attune.retry.") or queue == "executor.inquiry.responded":
        return 0
    is_a_workers_own = queue.removeprefix("attune.execution.worker.").isdigit()
    return 1 if is_a_workers_own else _EXECUTORS


def _is_well(place: str) -> bool:
    try:
        with urllib.request.urlopen(place, timeout=10) as answer:  # noqa: S310 - our own address
            return bool(json.load(answer)["status"] == "ok")
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
