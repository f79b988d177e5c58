"""Whoever owns servers may die without a word; nothing of them may stay."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import processes_in
from harness.waiting import wait_until
from harness.watchdog import ROOT

OWNER = """
import signal
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis

servers = [PostgreSQL(durable=False), RabbitMQ(), Redis()]
for server in servers:
    server.start()
for server in servers:
    print(server.directory, flush=True)
print("started", flush=True)
signal.pause()
"""


def start_owner() -> tuple[subprocess.Popen[str], list[Path]]:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    directories = []
    for line in owner.stdout:
        if line == "started\n":
            break
        directories.append(Path(line.strip()))
    owner.stdout.close()
    return owner, directories


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
def test_servers_and_data_go_with_their_owner(how: signal.Signals) -> None:
    owner, directories = start_owner()
    assert len(directories) == 3
    assert all(processes_in(directory) for directory in directories)

    owner.send_signal(how)
    owner.wait()

    def nothing_is_left() -> bool:
        return not any(directory.exists() or processes_in(directory) for directory in directories)

    wait_until(nothing_is_left, timeout=20, what="the servers are gone")
