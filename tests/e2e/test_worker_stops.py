"""How people take a worker out: drained with its work done, or stopped at once by a second signal."""

import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.waiting import wait_until
from tests.e2e.attune_process import AttuneProcess
from tests.e2e.conftest import MakeFleet
from tests.e2e.fleet import LONG, ended, held, told, until_running, until_status

STILL_BUSY = 3

pytestmark = pytest.mark.timeout(300)


def test_a_drain_waits_for_what_runs_and_then_nothing_is_left(fleet_with: MakeFleet) -> None:
    fleet = fleet_with()
    client = fleet.come("drained")
    begun = held(client, "begun")
    until_running(client, begun)
    hasty = fleet.command("worker", "drain", "drained", "--timeout", "0")
    assert hasty.returncode == STILL_BUSY
    assert "still has 1 execution" in hasty.stderr
    fleet.start_workers("other")
    others = client.executions.execute_many([{"action_ref": "field.work"}] * 5)
    other = client.workers.get("other").id
    assert {ended(client, one).worker for one in others} == {other}
    with ThreadPoolExecutor(1) as apart:
        drain = apart.submit(fleet.command, "worker", "drain", "drained", "--reason", "upgrade")
        wait_until(lambda: client.workers.get("drained").cordon_reason == "upgrade", timeout=LONG)
        assert not drain.done()
        fleet.let_go("begun")
        _is_drained(drain.result(timeout=LONG))
    assert ended(client, begun).worker == client.workers.get("drained").id
    assert client.workers.get("drained").load.total_active == 0
    assert fleet.processes["drained"].stop() == 0
    fleet.check_settled()


def _is_drained(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert "is drained" in done.stdout


def signalled_twice(process: AttuneProcess) -> int:
    """Both arrive before the first can have had any effect, in whichever order; the exit code."""
    process.signal(signal.SIGSTOP)
    process.signal(signal.SIGINT)
    process.signal(signal.SIGTERM)
    process.signal(signal.SIGCONT)
    return process.wait()


def test_f24_what_reaches_a_worker_together_with_the_stop_is_not_lost(
    fleet_with: MakeFleet,
) -> None:
    """Hand-offs and the signal are there when it wakes: each is begun and finished, or handed back."""
    fleet = fleet_with()
    client = fleet.come("leaving")
    fleet.send("leaving", signal.SIGSTOP)
    handed = client.executions.execute_many([{"action_ref": "core.echo"}] * 5)
    for one in handed:
        until_status(client, one, "scheduled")
    fleet.start_workers("other")
    fleet.send("leaving", signal.SIGTERM)
    fleet.send("leaving", signal.SIGCONT)
    assert {ended(client, one).status for one in handed} == {"completed"}
    assert fleet.rows("SELECT count(*) FROM attune.execution_attempt") == "0"
    assert fleet.processes["leaving"].wait() == 0
    fleet.check_settled()


@pytest.mark.parametrize("role", ["api", "executor", "sensor"])
def test_f24_a_second_signal_ends_a_process_at_once(role: str, fleet_with: MakeFleet) -> None:
    fleet = fleet_with(server__port="0")
    with AttuneProcess(role, **fleet.variables) as process:
        process.wait_for_event("Ready.")
        code = signalled_twice(process)
    [last] = told(process, "Asked twice to stop, ending now.")
    assert code == 128 + signal.Signals[last["signal"]]
    assert not told(process, "Stopped.")


def test_f24_a_worker_that_is_ended_at_once_leaves_no_process_and_loses_no_execution(
    fleet_with: MakeFleet,
) -> None:
    fleet = fleet_with(worker__heartbeat_interval="1", worker__shutdown_timeout="600")
    client = fleet.come("ended")
    retried, dropped = held(client, "retried", max_retries=1), held(client, "dropped")
    until_running(client, retried, dropped)
    left = fleet.processes_of(retried.id) | fleet.processes_of(dropped.id)
    fleet.start_workers("other")
    fleet.send("ended", signal.SIGTERM)
    fleet.processes["ended"].wait_for_event("Asked to stop.")
    fleet.send("ended", signal.SIGTERM)
    assert fleet.processes["ended"].wait() == 128 + signal.SIGTERM
    wait_until(
        lambda: not (fleet.processes_of(retried.id) | fleet.processes_of(dropped.id)) & left,
        timeout=LONG,
    )
    assert ended(client, dropped).status == "abandoned"
    fleet.let_go("retried", 2)
    completed = ended(client, retried)
    assert (completed.status, completed.attempt) == ("completed", 2)
    fleet.check_settled()
