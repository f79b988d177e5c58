"""The five scenarios of workers that come and go, each with real processes, PostgreSQL and RabbitMQ."""

import json
import signal
import time
from typing import Any

import pytest

import attune
from harness.waiting import wait_until
from tests.e2e.conftest import MakeFleet
from tests.e2e.fleet import (
    LONG,
    ended,
    held,
    until_running,
    until_status,
    until_worker,
)

NOT_PICKED_UP = "Execution timeout: worker did not pick up task within timeout"
EXPIRED = "Message expired in worker queue (worker unavailable)"

pytestmark = pytest.mark.timeout(300)


def alert(client: attune.Client, correlation: str) -> dict[str, Any]:
    """The payload of the one core.alert event with this correlation id, once there is one."""
    found: list[dict[str, Any]] = []

    def came() -> bool:
        events = client.events.iterate(trigger_ref="core.alert")
        payloads = [client.events.get(event.id).payload for event in events]
        found[:] = [one for one in payloads if one["correlation_id"].startswith(correlation)]
        return bool(found)

    wait_until(came, timeout=LONG, what=f"an alert {correlation}", interval=0.1)
    [payload] = found
    return payload


def test_scenario_1_f18_a_worker_dies_while_it_runs_something(fleet_with: MakeFleet) -> None:
    fleet = fleet_with(worker__heartbeat_interval="1")
    client = fleet.come("first")
    lost, retried = held(client, "lost"), held(client, "retried", max_retries=1)
    until_running(client, lost, retried)
    waiting = client.executions.execute("field.work")
    assert client.executions.get(waiting.id).reason == "concurrency"
    left = fleet.processes_of(lost.id) | fleet.processes_of(retried.id)
    assert len(left) >= 4
    fleet.start_workers("second")
    fleet.kill("first")
    wait_until(lambda: not fleet.processes_of(lost.id) & left, timeout=LONG)
    abandoned = ended(client, lost)
    assert abandoned.status == "abandoned"
    assert abandoned.error == "The worker first was lost while the execution was running."
    assert ended(client, waiting).status == "completed"
    until_status(client, retried, "running")
    assert not fleet.processes_of(retried.id) & left
    fleet.let_go("retried", 2)
    completed = ended(client, retried)
    assert (completed.status, completed.attempt) == ("completed", 2)
    assert completed.output("stdout") == "start 2\n"
    assert completed.worker == client.workers.get("second").id
    past = fleet.rows("SELECT execution, attempt, status, cause FROM attune.execution_attempt")
    assert past == f"{retried.id}|1|abandoned|worker_lost"
    payload = alert(client, f"execution:{lost.id}:worker_unavailable")
    assert payload["failure_type"] == "worker_unavailable"
    assert payload["details"]["worker"]["name"] == "first"
    fleet.check_settled()


def test_scenario_2_f17_a_worker_that_counts_as_alive_never_picks_it_up(
    fleet_with: MakeFleet,
) -> None:
    fleet = fleet_with(executor__scheduled_timeout="3", executor__timeout_check_interval="0.5")
    client = fleet.come("asleep")
    fleet.send("asleep", signal.SIGSTOP)
    before = time.monotonic()
    never = client.executions.execute("field.work")
    until_status(client, never, "scheduled")
    failed = ended(client, never)
    assert time.monotonic() - before >= 3
    assert (failed.status, failed.error) == ("failed", NOT_PICKED_UP)
    assert (failed.result or {})["failed_by"] == "execution_timeout_monitor"
    payload = alert(client, f"execution:{never.id}:not_started:")
    assert payload["failure_type"] == "execution_not_started"
    assert client.workers.get("asleep").status == "active"
    fleet.send("asleep", signal.SIGCONT)
    assert ended(client, client.executions.execute("field.work")).status == "completed"
    assert never.id not in fleet.starts()
    assert client.executions.get(never.id).result == failed.result
    fleet.check_settled()


def test_scenario_3_all_workers_are_down(fleet_with: MakeFleet) -> None:
    fleet = fleet_with()
    client = fleet.come("gone")
    assert fleet.processes["gone"].stop() == 0
    refused = ended(client, client.executions.execute("field.work"))
    assert (refused.status, refused.error) == (
        "failed",
        "no workers available; looked for runtime shell (0 active)",
    )
    assert fleet.starts() == []
    fleet.check_settled()


def test_scenario_3_with_a_grace_it_waits_for_a_worker_to_come(fleet_with: MakeFleet) -> None:
    fleet = fleet_with(executor__no_worker_grace="600")
    client = fleet.come()
    patient = client.executions.execute("field.work")
    wait_until(
        lambda: client.executions.get(patient.id).reason == "worker", timeout=LONG, interval=0.05
    )
    why = fleet.command("why", str(patient.id))
    assert why.returncode == 0
    assert "a worker with runtime shell" in why.stdout
    fleet.start_workers("late")
    assert ended(client, patient).status == "completed"
    assert fleet.starts() == [patient.id]
    fleet.check_settled()


def test_scenario_4_f24_a_worker_stops_gracefully(fleet_with: MakeFleet) -> None:
    fleet = fleet_with(worker__heartbeat_interval="1", worker__shutdown_timeout="45")
    client = fleet.come("leaving")
    begun = held(client, "begun")
    until_running(client, begun)
    fleet.start_workers("staying")
    fleet.send("leaving", signal.SIGTERM)
    leaving = until_worker(client, "leaving", "inactive")
    assert client.executions.get(begun.id).status == "running"
    others = client.executions.execute_many([{"action_ref": "field.work"}] * 10)
    staying = client.workers.get("staying").id
    assert {ended(client, one).worker for one in others} == {staying}
    assert client.workers.get("leaving").heartbeat_stale is False
    fleet.let_go("begun")
    finished = ended(client, begun)
    assert (finished.status, finished.attempt, finished.worker) == ("completed", 1, leaving.id)
    assert fleet.processes["leaving"].wait() == 0
    fleet.check_settled()


def test_scenario_4_f24_what_it_cannot_finish_in_time_goes_to_another(
    fleet_with: MakeFleet,
) -> None:
    fleet = fleet_with()
    client = fleet.come()
    fleet.start_workers("leaving", ATTUNE__WORKER__SHUTDOWN_TIMEOUT="1")
    retried, dropped = held(client, "retried", max_retries=1), held(client, "dropped")
    until_running(client, retried, dropped)
    left = fleet.processes_of(retried.id) | fleet.processes_of(dropped.id)
    fleet.start_workers("staying")
    before = time.monotonic()
    assert fleet.processes["leaving"].stop() == 0
    assert time.monotonic() - before < 15
    assert not (fleet.processes_of(retried.id) | fleet.processes_of(dropped.id)) & left
    abandoned = ended(client, dropped)
    assert abandoned.error == "The worker leaving was stopped while the execution was running."
    fleet.let_go("retried", 2)
    completed = ended(client, retried)
    assert (completed.status, completed.attempt) == ("completed", 2)
    assert completed.worker == client.workers.get("staying").id
    fleet.check_settled()


def test_scenario_5_f30_a_message_expires_in_the_queue_of_a_worker(fleet_with: MakeFleet) -> None:
    fleet = fleet_with(executor__worker_queue_ttl="2", executor__timeout_check_interval="600")
    client = fleet.come("dead")
    fleet.kill("dead")
    expired = client.executions.execute("field.work")
    failed = ended(client, expired)
    assert (failed.status, failed.error) == ("failed", EXPIRED)
    assert (failed.result or {})["failed_by"] == "dead_letter_handler"
    [letter] = client.dead_letters.list(reason="expired", message_type="execution.scheduled")
    worker = client.workers.get("dead").id
    assert letter.queue == f"attune.execution.worker.{worker}"
    assert str(expired.id) in client.dead_letters.get(letter.id).body
    listed = fleet.command("dead-letter", "list", "--waiting", "-o", "json")
    assert letter.id in [one["id"] for one in json.loads(listed.stdout)]
    fleet.start_workers("dead")
    assert fleet.command("dead-letter", "replay", str(letter.id)).returncode == 0
    assert ended(client, client.executions.execute("field.work")).status == "completed"
    assert expired.id not in fleet.starts()
    assert client.executions.get(expired.id).result == failed.result
    assert client.dead_letters.get(letter.id).replay_count == 1
    fleet.check_settled()
