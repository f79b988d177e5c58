"""A whole installation as real processes, on either profile, and a client that may do everything."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

import attune
from harness.ports import free_port
from tests.e2e.attune_process import AttuneProcess, run_attune

ADMIN = {"login": "root.of.tests", "password": "a long password of tests"}


class Installation:
    """`processes` has each by its name. Leaving ends them all."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.address = ""
        self.token = ""
        self.processes: dict[str, AttuneProcess] = {}
        self.variables = {
            "ATTUNE__DATA_DIR": str(folder),
            "ATTUNE__SECURITY__ADMIN_LOGIN": ADMIN["login"],
            "ATTUNE__SECURITY__ADMIN_PASSWORD": ADMIN["password"],
            **variables,
        }
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def up(self, *arguments: str) -> Self:
        """Everything in one process, on SQLite."""
        process = self._start("up", "up", "--port", "0", *arguments)
        self.address = process.address()
        return self

    def roles(self, *, executors: int = 2, workers: int = 2) -> Self:
        """An API, executors and workers, each a process of its own."""
        done = run_attune("db", "upgrade", **self.variables)
        assert done.returncode == 0, done.stderr
        port = free_port()
        self.variables["ATTUNE__SERVER__PORT"] = str(port)
        self.address = f"http://127.0.0.1:{port}"
        self._start("api", "api").wait_for_event("Ready.")
        for number in range(1, workers + 1):
            self.start_worker(f"worker-{number}")
        for number in range(1, executors + 1):
            self._start(f"executor-{number}", "executor")
        for name, process in self.processes.items():
            if name != "api":
                process.wait_for_event("Ready.")
        return self

    def start_worker(self, name: str) -> AttuneProcess:
        return self._start(name, "worker", ATTUNE__WORKER__NAME=name)

    def client(self) -> attune.Client:
        client = self._stack.enter_context(attune.Client(self.address))
        self.token = client.auth.login(ADMIN["login"], ADMIN["password"]).access_token
        return client

    def _start(self, name: str, *arguments: str, **variables: str) -> AttuneProcess:
        process = AttuneProcess(*arguments, **{**self.variables, **variables})
        self.processes[name] = self._stack.enter_context(process)
        return process


def production(folder: Path, postgresql_url: str, rabbitmq_url: str) -> Installation:
    return Installation(
        folder,
        ATTUNE__DATABASE__URL=postgresql_url,
        ATTUNE__MESSAGE_QUEUE__URL=rabbitmq_url,
        ATTUNE__SECURITY__JWT_SECRET="a secret of the tests",
        ATTUNE__SECURITY__ENCRYPTION_KEY="another secret of the tests",
    )
