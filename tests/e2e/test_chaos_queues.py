"""Executors and a worker are killed at random while 5,000 executions go through 50 lanes: order and limits hold."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import pytest

import attune
from attune.client.requests import ExecutionRequest
from attune.pipeline.queues.decisions import Left
from attune.pipeline.queues.verify import Replay
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_until
from tests.e2e.chaos import (
    Books,
    MortalInstallation,
    Watch,
    lanes_of,
    limited,
    most_at_once,
    requests,
    sequences,
)
from tests.e2e.installation import production

SEED: Final = 4
LIMITS: Final = range(1, 6)
HOSTS: Final = 10
EACH: Final = 100
LANES: Final = len(LIMITS) * HOSTS
TOTAL: Final = LANES * EACH
AT_ONCE: Final = 250
EXECUTOR_KILLS: Final = 9
SLOTS_OF_A_WORKER: Final = 10

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def books(
    postgresql: PostgreSQL, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Books]:
    """What the rows tell when all of it is over."""
    folder = tmp_path_factory.mktemp("chaos")
    url, broker = postgresql.create_database(), rabbitmq.create_vhost()
    with MortalInstallation(folder, **production(folder, url, broker).variables) as installation:
        installation.roles(executors=3, workers=4)
        installation.client().packs.upload(limited(folder, LIMITS))
        source = random.Random(SEED)
        wanted = requests(LIMITS, HOSTS, EACH, source)
        with Watch(url) as watch, ThreadPoolExecutor(2) as threads:
            asked = [
                threads.submit(ask, installation.client(), some)
                for some in (wanted[::2], wanted[1::2])
            ]
            kill_meanwhile(installation, watch, source)
            for each in asked:
                each.result()
            wait_until(lambda: watch.ended() == TOTAL, timeout=120, interval=0.1)
            found = watch.books()
        installation.wait_for_reborn()
    yield found
    rabbitmq.delete_vhost(broker)
    postgresql.drop_database(url)


def ask(client: attune.Client, wanted: Sequence[ExecutionRequest]) -> None:
    for first in range(0, len(wanted), AT_ONCE):
        client.executions.execute_many(wanted[first : first + AT_ONCE])


def kill_meanwhile(installation: MortalInstallation, watch: Watch, source: random.Random) -> None:
    """At so many moments of the way, the one in the middle for a worker."""
    moments = sorted(source.sample(range(1, TOTAL * 9 // 10), EXECUTOR_KILLS + 1))
    for number, moment in enumerate(moments):
        wait_until(partial(_reached, watch, moment), timeout=120, interval=0.1)
        if number == len(moments) // 2:
            installation.kill_and_restart(f"worker-{source.randint(1, 4)}")
        else:
            installation.kill_and_restart(f"executor-{source.randint(1, 3)}")


def _reached(watch: Watch, moment: int) -> bool:
    return watch.ended() >= moment


def test_every_execution_ends_once_and_only_what_the_lost_worker_ran_ends_badly(
    books: Books,
) -> None:
    ends = Counter(run.status for run in books.runs)
    assert ends["completed"] + ends["abandoned"] == TOTAL == len(books.runs)
    assert ends["abandoned"] <= SLOTS_OF_A_WORKER
    left = Counter(
        item.execution
        for decision in books.decisions
        for item in decision.items
        if isinstance(item, Left)
    )
    assert left == Counter(run.id for run in books.runs)


def test_the_decision_log_proves_order_and_limits(books: Books) -> None:
    replay = Replay()
    for decision in books.decisions:
        replay.feed(decision)
    proof = replay.proof()
    assert proof.violation is None, proof.violation.text
    assert (proof.lanes, proof.partial_lanes) == (LANES, 0)
    assert (proof.executions, proof.admissions) == (TOTAL, TOTAL)


def test_nothing_is_held_at_the_end(books: Books) -> None:
    rest = books.rest
    assert (rest.entries, rest.active, rest.waiting, rest.pooled) == (0, 0, 0, 0)
    assert (rest.lanes, rest.enqueued, rest.completed) == (LANES, TOTAL, TOTAL)


def test_never_more_ran_at_once_than_the_limit_by_the_workers_own_times(books: Books) -> None:
    most: dict[int, int] = dict.fromkeys(LIMITS, 0)
    for (action_ref, host), runs in lanes_of(books.runs).items():
        limit = int(action_ref.rpartition("_")[2])
        assert most_at_once(runs) <= limit, (action_ref, host)
        most[limit] = max(most[limit], most_at_once(runs))
    assert most[1] == 1
    assert all(most[limit] > 1 for limit in LIMITS[1:]), "the limits were never put to the test"


def test_where_one_runs_at_a_time_they_start_in_the_order_in_which_they_came(books: Books) -> None:
    place = sequences(books.decisions)
    ones = {key: runs for key, runs in lanes_of(books.runs).items() if key[0] == "chaos.work_1"}
    assert len(ones) == HOSTS
    for key, runs in ones.items():
        started = [run for run in runs if run.started_at is not None]
        by_start = sorted(started, key=lambda run: (run.started_at, place[run.id]))
        assert [place[run.id] for run in by_start] == sorted(place[run.id] for run in started), key
        assert sorted(place[run.id] for run in runs) == list(range(1, EACH + 1)), key
