"""A private Redis server."""

import socket
from typing import ClassVar

from harness.binaries import require
from harness.ports import LOOPBACK
from harness.server import Server

SETTINGS = ("--bind", LOOPBACK, "--save", "", "--appendonly", "no", "--daemonize", "no")


class Redis(Server):
    """Keeps everything in memory: what a killed Redis forgets must come back from the database."""

    name: ClassVar[str] = "redis"
    system_user: ClassVar[str] = "redis"

    @property
    def url(self) -> str:
        """Database 0."""
        return self.url_of(0)

    def url_of(self, database: int) -> str:
        """The address of a database by its number, 0 to 15."""
        return f"redis://{LOOPBACK}:{self.port}/{database}"

    def flush(self) -> None:
        """Empty every database."""
        answer = self._ask("FLUSHALL")
        if answer != "+OK":
            raise ConnectionError(f"Redis answered {answer!r} to FLUSHALL")

    def _prepare(self) -> None:
        """Nothing on disk."""

    def _launch(self) -> None:
        directory = str(self.directory)
        program = require("redis-server")
        self._spawn([program, "--port", str(self.port), "--dir", directory, *SETTINGS])

    def _is_ready(self) -> bool:
        try:
            return self._ask("PING") == "+PONG"
        except OSError:
            return False

    def _ask(self, command: str) -> str:
        with socket.create_connection((LOOPBACK, self.port), timeout=5) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.makefile().readline().strip()
