"""A private PostgreSQL server."""

import signal
import uuid
from typing import ClassVar
from urllib.parse import urlsplit

from harness.binaries import require
from harness.ports import LOOPBACK
from harness.server import Server, ServerFailed

USER = "attune"

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "logging_collector": "off",
    "log_checkpoints": "off",
}
# Survives the death of the server, as the tests demand, but not the death of the machine.
QUICK_SETTINGS = {"fsync": "off", "full_page_writes": "off"}


class PostgreSQL(Server):
    """durable=True keeps every safeguard on, for measurements; durable=False is quick, for tests."""

    name: ClassVar[str] = "postgresql"
    system_user: ClassVar[str] = "postgres"
    # SIGTERM would wait for the last client to leave; SIGINT disconnects clients and shuts down cleanly.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT

    def __init__(self, *, durable: bool = True) -> None:
        super().__init__()
        self._settings = SETTINGS if durable else SETTINGS | QUICK_SETTINGS

    @property
    def url(self) -> str:
        """The maintenance database; tests take one of their own by create_database()."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The address of a database on this server."""
        return f"postgresql://{USER}@{LOOPBACK}:{self.port}/{database}"

    def create_database(self, name: str | None = None, like: str = "template1") -> str:
        """Make a database and return its address; without a name, one that nobody else uses.

        `like` names the database that it is a copy of.
        """
        name = name or f"attune_{uuid.uuid4().hex}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{like}"')
        return self.url_of(name)

    def drop_database(self, name_or_url: str) -> None:
        """Remove a database, and disconnect whoever still uses it."""
        name = urlsplit(name_or_url).path.lstrip("/")
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def execute(self, sql: str, url: str | None = None) -> str:
        """Run one statement and return its rows as psql prints them, unaligned."""
        psql = require("postgresql") / "psql"
        quietly = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1"]
        return self._run([psql, *quietly, "-c", sql, url or self.url]).strip()

    def _prepare(self) -> None:
        self._run(
            [
                require("postgresql") / "initdb",
                *("--pgdata", "data", "--username", USER, "--auth", "trust"),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"),
            ]
        )

    def _launch(self) -> None:
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        postgres = require("postgresql") / "postgres"
        self._spawn([postgres, "-D", self.directory / "data", "-p", str(self.port), *options])

    def _is_ready(self) -> bool:
        try:
            return self.execute("SELECT 1") == "1"
        except ServerFailed:
            return False
