"""Processes that stand still for longer than they may, and wake: nothing is lost, and nothing counts twice."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg
import pytest

import attune
from attune.client.models import Execution
from harness.waiting import wait_until
from tests.e2e.conftest import MakeFleet
from tests.e2e.fleet import LONG, Fleet, ended, held, told, until_running, until_worker

_LOCK_WORKERS: Final = "SELECT id FROM attune.worker FOR UPDATE"
# Who wants to hand something over; the worker's own heart may wait for the same row.
_WAITING: Final = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
       AND query LIKE '%FROM worker%ORDER BY id FOR UPDATE%'
"""

pytestmark = pytest.mark.timeout(300)


def given_to_another(fleet: Fleet, client: attune.Client, *executions: Execution) -> None:
    """They run again, with their second attempt, while the first one's worker stands still."""

    def are() -> bool:
        found = [client.executions.get(one.id) for one in executions]
        return all((one.attempt, one.status) == (2, "running") for one in found)

    wait_until(are, timeout=LONG, what="given to another worker", interval=0.05)
    assert sorted(fleet.starts()) == sorted([one.id for one in executions] * 2)


def takes_new_work(client: attune.Client, name: str, other: str) -> None:
    """Of another action: the slots of this one may all be held."""
    back = until_worker(client, name, "active")
    client.workers.cordon(other)
    done = ended(client, client.executions.execute("core.echo", {"message": "back"}))
    assert (done.status, done.worker) == ("completed", back.id)


def test_f19_a_worker_that_wakes_ends_what_is_not_its_own_and_its_late_results_change_nothing(
    fleet_with: MakeFleet,
) -> None:
    fleet = fleet_with(worker__heartbeat_interval="1")
    client = fleet.come("paused")
    endless, late = held(client, "endless", max_retries=1), held(client, "late", max_retries=1)
    until_running(client, endless, late)
    zombies = fleet.processes_of(endless.id)
    fleet.start_workers("awake")
    fleet.send("paused", signal.SIGSTOP)
    given_to_another(fleet, client, endless, late)
    fleet.let_go("late")
    fleet.send("paused", signal.SIGCONT)
    takes_new_work(client, "paused", "awake")
    wait_until(lambda: not fleet.processes_of(endless.id) & zombies, timeout=LONG)
    wait_until(lambda: {endless.id, late.id} <= fenced(fleet), timeout=LONG)
    again = client.executions.get(late.id)
    assert (again.status, again.attempt, again.result) == ("running", 2, None)
    for hold, one in (("endless", endless), ("late", late)):
        fleet.let_go(hold, 2)
        done = ended(client, one)
        assert (done.status, done.attempt, done.output("stdout")) == ("completed", 2, "start 2\n")
        assert done.worker == client.workers.get("awake").id
    fleet.check_settled()


def fenced(fleet: Fleet) -> set[int]:
    """What the paused worker says that it gave up: what still ran, and what had ended too late."""
    log = fleet.processes["paused"]
    ended_here = {one["execution_id"] for one in told(log, "Fenced: an attempt is ended.")}
    sentence = "Results came too late: another attempt has the execution."
    return ended_here.union(*(one["executions"] for one in told(log, sentence)))


def test_f19_also_processes_that_stand_still_are_ended_when_their_worker_wakes(
    fleet_with: MakeFleet,
) -> None:
    """Its broker, too, has closed its connection meanwhile."""
    fleet = fleet_with(worker__heartbeat_interval="1", message_queue__heartbeat="1")
    client = fleet.come("paused")
    one = held(client, "one", max_retries=1)
    until_running(client, one)
    zombies = fleet.processes_of(one.id)
    fleet.start_workers("awake")
    fleet.send("paused", signal.SIGSTOP)
    zombies |= fleet.signal_processes_of(one.id, signal.SIGSTOP)
    given_to_another(fleet, client, one)
    fleet.send("paused", signal.SIGCONT)
    wait_until(lambda: not fleet.processes_of(one.id) & zombies, timeout=LONG)
    takes_new_work(client, "paused", "awake")
    fleet.let_go("one", 2)
    assert ended(client, one).attempt == 2
    fleet.check_settled()


@contextmanager
def workers_locked(url: str) -> Iterator[None]:
    """Whoever wants to hand something to a worker waits for as long as this lasts."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(url))
        try:
            runner.run(connection.execute(f"BEGIN; {_LOCK_WORKERS}"))
            yield
        finally:
            runner.run(connection.close())


def test_f22_an_executor_that_stands_still_in_a_transaction_holds_up_nobody(
    fleet_with: MakeFleet,
) -> None:
    fleet = fleet_with()
    client = fleet.come("worker")
    with workers_locked(fleet.variables["ATTUNE__DATABASE__URL"]):
        first = client.executions.execute("field.work")
        wait_until(lambda: fleet.rows(_WAITING) != "0", timeout=LONG, interval=0.05)
        fleet.send("executor-1", signal.SIGSTOP)
    fleet.start_executor("executor-2")
    assert ended(client, first).status == "completed"
    fleet.send("executor-1", signal.SIGCONT)
    for _ in range(2):
        some = client.executions.execute_many([{"action_ref": "field.work"}] * 20)
        fleet.send("executor-1", signal.SIGSTOP)
        assert {ended(client, one).status for one in some} == {"completed"}
        fleet.send("executor-1", signal.SIGCONT)
    assert fleet.processes["executor-2"].stop() == 0
    assert ended(client, client.executions.execute("field.work")).status == "completed"
    assert sorted(fleet.starts()) == sorted(one.id for one in client.executions.iterate())
    assert {one.attempt for one in client.executions.iterate()} == {1}
    fleet.check_settled()
