"""What the private servers have in common: one life cycle, one set of faults."""

import os
import pwd
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, NamedTuple, Self

from harness.ports import free_port
from harness.processes import destroy, kill_all, processes_in, signal_all
from harness.waiting import NotInTime, wait_until
from harness.watchdog import WATCHDOG

LOG_TAIL = 4_000


class ServerFailed(Exception):
    """A server did not do as told; carries the end of its log."""


class Account(NamedTuple):
    """Whom a server runs as, in the terms of the subprocess module; None leaves it as it is."""

    user: int | None
    group: int | None
    extra_groups: list[int] | None


def _unprivileged_account(name: str) -> Account:
    """Servers refuse to run as root, or should."""
    if os.geteuid() != 0:
        return Account(None, None, None)
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid, [])


class Server(ABC):
    """A server of one's own on a loopback port, with data in a temporary directory.

    Port and data stay the same until close(). Stopping what is stopped and closing what is closed is safe.
    """

    name: ClassVar[str]
    system_user: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    start_timeout: ClassVar[float] = 60.0
    stop_timeout: ClassVar[float] = 30.0

    def __init__(self) -> None:
        self.port = free_port()
        self._account = _unprivileged_account(self.system_user)
        self._directory: Path | None = None
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of the server's default database, host or index."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make data and configuration; called once, in an empty directory."""

    @abstractmethod
    def _launch(self) -> None:
        """Start the processes, by _spawn()."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Whether the server answers a real request."""

    @property
    def directory(self) -> Path:
        """Where everything of this server is, from its first start to close()."""
        if self._directory is None:
            raise ServerFailed(f"{self.name} has not been started")
        return self._directory

    @property
    def pids(self) -> list[int]:
        """Every process of this server."""
        return processes_in(self._directory) if self._directory else []

    @property
    def running(self) -> bool:
        """Whether any process of this server lives; a paused one does."""
        return bool(self.pids)

    def start(self) -> None:
        """Return when the server answers."""
        if self.running and all(child.poll() is None for child in self._children):
            return
        if self._directory is None:
            self._make_directory()
        self.kill()
        self._launch()
        self._wait_until_ready()

    def stop(self) -> None:
        """Ask the server to end, and return when all of it has."""
        if not self.running:
            return
        self.resume()
        for child in reversed(self._children):
            if child.poll() is None:
                child.send_signal(self.stop_signal)
        try:
            wait_until(self._has_ended, timeout=self.stop_timeout)
        except NotInTime as error:
            self.kill()
            raise ServerFailed(f"{self.name} had to be killed:\n{self.log_tail()}") from error

    def kill(self) -> None:
        """SIGKILL to every process of the server, as in a crash; the data stays."""
        if self._directory is not None:
            kill_all(self._directory)
        wait_until(self._has_ended, what=f"{self.name} has ended")

    def restart(self) -> None:
        """Stop gracefully, then start with the same port and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze every process: connections stay open, and nothing answers."""
        if self._directory is not None:
            signal_all(self._directory, signal.SIGSTOP)

    def resume(self) -> None:
        """Undo pause()."""
        if self._directory is not None:
            signal_all(self._directory, signal.SIGCONT)

    def ensure_running(self) -> None:
        """Bring the server back after a test that paused, stopped or killed it."""
        self.resume()
        self.start()

    def close(self) -> None:
        """End the server at once and remove its data, which nobody needs any more."""
        if self._directory is None:
            return
        self.kill()
        destroy(self._directory)
        WATCHDOG.forget(self._directory)
        self._directory = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def log_tail(self) -> str:
        """The end of what the server has written."""
        log = self.directory / "server.log"
        return log.read_text(errors="replace")[-LOG_TAIL:] if log.exists() else "(no log)"

    def _make_directory(self) -> None:
        directory = Path(tempfile.mkdtemp(prefix=f"attune-{self.name}-")).resolve()
        WATCHDOG.watch(directory)
        self._directory = directory
        self._give_to_server(directory)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.start_timeout
        while not self._is_ready():
            ended = any(child.poll() is not None for child in self._children)
            if ended or time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"{self.name} did not start; its log ends:\n{self.log_tail()}")
            time.sleep(0.02)

    def _spawn(self, command: Sequence[str | Path], **environment: str) -> None:
        """Start a process of the server in a session of its own, so that Ctrl-C does not reach it."""
        with (self.directory / "server.log").open("ab") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environment(environment),
                cwd=self.directory,
                user=self._account.user,
                group=self._account.group,
                extra_groups=self._account.extra_groups,
            )
        self._children.append(child)

    def _run(self, command: Sequence[str | Path], **environment: str) -> str:
        """Run a program of the server to its end, as the server's user, and return what it printed."""
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=self._environment(environment),
            cwd=self.directory,
            user=self._account.user,
            group=self._account.group,
            extra_groups=self._account.extra_groups,
        )
        if done.returncode != 0:
            raise ServerFailed(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _environment(self, additions: Mapping[str, str]) -> dict[str, str]:
        """Nothing of the machine's own settings for this server, its passwords or its defaults."""
        inherited = {"PATH": os.environ.get("PATH", os.defpath)}
        return {**inherited, "HOME": str(self.directory), "LANG": "C.UTF-8", **additions}

    def _write(self, name: str, text: str) -> Path:
        """A file in the server's directory that the server's user may read and write."""
        path = self.directory / name
        path.write_text(text)
        self._give_to_server(path)
        return path

    def _give_to_server(self, path: Path) -> None:
        if self._account.user is not None and self._account.group is not None:
            os.chown(path, self._account.user, self._account.group)

    def _has_ended(self) -> bool:
        """Reaps as well: a killed process holds its port until the kernel offers it to its parent."""
        self._children = [child for child in self._children if child.poll() is None]
        return not self._children and not self.pids
