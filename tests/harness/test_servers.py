"""Each server, by the same questions: does it answer, does it keep its port, does it leave nothing behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ports import answers
from harness.postgresql import PostgreSQL
from harness.processes import processes_in
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import Server

SERVERS = [PostgreSQL, RabbitMQ, Redis]


@pytest.fixture(params=SERVERS, ids=lambda kind: kind.name)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as server:
        yield server


def is_up(server: Server) -> tuple[bool, bool]:
    return server.running, answers(server.port)


def test_a_server_lives_through_stop_kill_and_pause_on_one_port(server: Server) -> None:
    port = server.port
    assert is_up(server) == (True, True)

    server.stop()
    server.stop()
    assert is_up(server) == (False, False)

    server.start()
    server.kill()
    assert is_up(server) == (False, False)

    server.start()
    server.pause()
    server.resume()
    assert is_up(server) == (True, True)
    assert server.port == port


def test_a_closed_server_leaves_neither_process_nor_data() -> None:
    server = Redis()
    server.start()
    directory = server.directory

    server.close()
    server.close()

    assert not directory.exists()
    assert not processes_in(directory)


def test_a_server_does_not_run_as_root(redis_server: Redis) -> None:
    owners = {Path(f"/proc/{pid}").stat().st_uid for pid in redis_server.pids}

    assert owners
    assert 0 not in owners


def test_a_server_that_lost_one_of_its_processes_can_be_started_again(rabbitmq: RabbitMQ) -> None:
    rabbitmq.ensure_running()
    rabbitmq._children[-1].kill()  # the node, but not its port mapper
    rabbitmq._children[-1].wait()

    rabbitmq.start()

    assert answers(rabbitmq.port)
