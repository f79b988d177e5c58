"""F26: what makes a worker look dead. Its actions' load does not; an event loop that stands still does."""

import asyncio
import threading
from typing import Final

import pytest

import attune
from attune.kernel.configuration import load_settings
from attune.services.roles import Role, role
from harness.waiting import wait_until
from tests.e2e.conftest import MakeFleet
from tests.e2e.fleet import LONG, Fleet, ended, held, until_running, until_worker

BURNERS: Final = 6
BEATS: Final = 10
_NAME: Final = "ATTUNE__WORKER__NAME"

pytestmark = pytest.mark.timeout(300)


def test_f26_actions_that_burn_all_processors_do_not_make_their_worker_look_dead(
    fleet_with: MakeFleet,
) -> None:
    """Ten beats are more than three times the silence after which it would be given up."""
    fleet = fleet_with(worker__heartbeat_interval="1")
    client = fleet.come("burnt")
    burning = [
        client.executions.execute("field.burn", env_vars={"HOLD": "fire"}) for _ in range(BURNERS)
    ]
    until_running(client, *burning)
    seen = set()

    def beats() -> bool:
        worker = client.workers.get("burnt")
        seen.add(worker.last_heartbeat)
        assert (worker.status, worker.heartbeat_stale) == ("active", False)
        return len(seen) > BEATS

    wait_until(beats, timeout=LONG, what="beats while everything burns", interval=0.1)
    fleet.let_go("fire")
    assert {(ended(client, one).status, ended(client, one).attempt) for one in burning} == {
        ("completed", 1)
    }
    assert {one.event for one in client.workers.iterate_history("burnt")} == {"registered"}
    fleet.check_settled()


async def test_f26_a_worker_whose_loop_stands_still_is_given_up_and_comes_back(
    fleet_with: MakeFleet,
) -> None:
    """The worker is in this process, in the loop of this test; the story is told from a thread."""
    fleet = fleet_with(worker__heartbeat_interval="1")
    client = fleet.come()
    process = role(Role.WORKER, load_settings({**fleet.variables, _NAME: "blocked"}))
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(process.run())
    await loop.run_in_executor(None, _story, fleet, client, loop)
    process.ask_to_stop()
    assert await running == 0
    fleet.check_settled()


def _story(fleet: Fleet, client: attune.Client, loop: asyncio.AbstractEventLoop) -> None:
    wait_until(lambda: len(client.workers.list()) == 1, timeout=LONG, interval=0.05)
    work = held(client, "work", max_retries=1)
    until_running(client, work)
    zombies = fleet.processes_of(work.id)
    fleet.start_workers("other")
    let_it_turn = threading.Event()
    loop.call_soon_threadsafe(let_it_turn.wait, LONG)
    until_worker(client, "blocked", "inactive")
    assert fleet.processes_of(work.id) & zombies
    fleet.let_go("work", 2)
    completed = ended(client, work)
    assert (completed.status, completed.attempt) == ("completed", 2)
    let_it_turn.set()
    until_worker(client, "blocked", "active")
    wait_until(lambda: not fleet.processes_of(work.id), timeout=LONG, interval=0.05)
    client.workers.cordon("other")
    again = ended(client, client.executions.execute("field.work"))
    assert again.worker == client.workers.get("blocked").id
