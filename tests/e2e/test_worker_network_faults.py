"""A worker is cut off from the broker, or from the database, for a moment or for longer than its lease."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import psutil
import pytest

from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_until
from tests.e2e.partitions import (
    LONG,
    MOMENT,
    SECONDS,
    Fault,
    Scene,
    Server,
    scene_of,
)

LONG_RUN: Final = ("sleep", "120")  # what `net.long` becomes

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def scene(
    postgresql: PostgreSQL, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    with scene_of(postgresql, rabbitmq, tmp_path_factory.mktemp("workers")) as found:
        yield found


@pytest.mark.parametrize("seconds", [MOMENT, LONG], ids=["a moment", "longer than a lease"])
@pytest.mark.parametrize("fault", ["cut", "black hole"])
@pytest.mark.parametrize("server", ["broker", "database"])
def test_a_broken_link_heals_and_everything_accepted_ends(
    server: Server, fault: Fault, seconds: float, scene: Scene
) -> None:
    scene.break_and_heal("worker-1", server, fault, seconds)


@pytest.mark.parametrize("fault", ["cut", "black hole"])
def test_a_worker_without_the_broker_gets_nothing_new_ends_what_it_runs_and_comes_back(
    fault: Fault, scene: Scene
) -> None:
    running = scene.begun("net.held", on="worker-1", apart_from="worker-2")
    with scene.installation.broken("worker-1", "broker", fault):
        wait_until(partial(is_in, scene, "error"), timeout=SECONDS, what="a worker is unresponsive")
        others = [scene.client.executions.execute("net.slow").id for _ in range(4)]
        scene.client.executions.wait(others[-1], timeout=SECONDS)
        scene.journal.let_go(running)
        scene.client.executions.wait(running, timeout=SECONDS)
        assert is_in(scene, "error")
    ended = [running, *others]
    scene.check_ended(ended)
    one, two = (scene.worker(name).id for name in ("worker-1", "worker-2"))
    assert [scene.ended[each].attempt for each in ended] == [1] * len(ended)
    assert [scene.ended[each].worker for each in ended] == [one, *[two] * len(others)]
    wait_until(partial(is_in, scene, "active"), timeout=SECONDS, what="the worker answers again")
    after = scene.begun("net.held", on="worker-1", apart_from="worker-2")
    scene.journal.let_go(after)
    scene.check_ended([after])
    assert scene.ended[after].worker == one
    assert {"unresponsive", "responsive"} <= happened(scene)


def is_in(scene: Scene, status: str) -> bool:
    return scene.worker("worker-1").status == status


def happened(scene: Scene) -> set[str]:
    return {entry.event for entry in scene.client.workers.history("worker-1").items}


@pytest.mark.parametrize("fault", ["cut", "black hole"])
def test_what_a_worker_without_the_database_runs_goes_on_elsewhere_and_its_processes_end(
    fault: Fault, scene: Scene
) -> None:
    running = scene.begun("net.long", on="worker-1", apart_from="worker-2")
    assert processes(scene, "worker-1", *LONG_RUN) == 1
    with scene.installation.broken("worker-1", "database", fault):
        wait_until(partial(runs_once, scene, "worker-2"), timeout=SECONDS, what="it goes on")
        assert processes(scene, "worker-1", *LONG_RUN) == 1
    wait_until(partial(told, scene, "Fenced", running), timeout=SECONDS, what="it learns of it")
    wait_until(partial(runs_nowhere, scene, "worker-1"), timeout=SECONDS, what="the old run ends")
    wait_until(lambda: scene.outcome(running).status == "running", timeout=SECONDS)
    assert scene.outcome(running).attempt == 2
    scene.client.executions.cancel(running)
    scene.check_ended([running])
    assert (scene.ended[running].status, scene.journal.runs()[running]) == ("cancelled", 2)
    wait_until(partial(is_in, scene, "active"), timeout=SECONDS, what="the worker is back")
    assert {"lost", "back"} <= happened(scene)


def runs_once(scene: Scene, name: str) -> bool:
    return processes(scene, name, *LONG_RUN) == 1


def runs_nowhere(scene: Scene, name: str) -> bool:
    return processes(scene, name, *LONG_RUN) == 0


def told(scene: Scene, sentence: str, execution: int) -> bool:
    return scene.has_told("worker-1", sentence, execution)


def processes(scene: Scene, name: str, *command: str) -> int:
    """How many of this command line, or of one that ends so, a worker has below it."""
    worker = psutil.Process(scene.installation.processes[name].pid)
    found = [_command(each)[-len(command) :] for each in worker.children(recursive=True)]
    return found.count(list(command))


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has just ended
        return []


@pytest.mark.parametrize("fault", ["cut", "black hole"])
def test_f19_what_a_lost_worker_has_to_tell_of_its_attempt_changes_nothing(
    fault: Fault, scene: Scene
) -> None:
    running = scene.begun("net.held", on="worker-1", apart_from="worker-2")
    with scene.installation.broken("worker-1", "database", fault):
        wait_until(lambda: scene.outcome(running).is_terminal, timeout=SECONDS, what="it ends")
        before = scene.outcome(running)
        scene.journal.let_go(running)
        wait_until(partial(is_over, scene), timeout=SECONDS, what="the old run ends")
    wait_until(partial(told, scene, "Results came too late", running), timeout=SECONDS)
    assert scene.outcome(running) == before
    assert (before.status, before.attempt) == ("completed", 2)
    assert "second" in (before.result or "")
    scene.check_ended([running])


def is_over(scene: Scene) -> bool:
    worker = psutil.Process(scene.installation.processes["worker-1"].pid)
    return not any("held.sh" in " ".join(_command(one)) for one in worker.children(recursive=True))


def test_the_decision_log_proves_order_and_limits(scene: Scene) -> None:
    scene.check_log()
