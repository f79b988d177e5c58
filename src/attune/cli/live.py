"""Following an execution on the screen: where it stands, and what it writes, as it happens."""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TextIO

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.status import Status

from attune.client.client import Client
from attune.client.models import Execution
from attune.kernel.errors import AttuneError
from attune.kernel.statuses import ExecutionStatus

_LAST_WORDS_SECONDS: Final = 5.0


class Output:
    """Copies the output of an execution while it runs, one thread for each stream.

    `targets` say by name which of our own streams each goes to: a spinner replaces those while it turns.
    """

    def __init__(self, client: Client, execution: int, targets: Mapping[str, str]) -> None:
        self._client = client
        self._execution = execution
        self._threads = [
            threading.Thread(target=self._copy, args=pair, daemon=True) for pair in targets.items()
        ]
        self._abandoned = False

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float | None = None) -> None:
        for thread in self._threads:
            thread.join(seconds)

    def abandon(self) -> None:
        """What breaks from now on is not told: nobody follows any more."""
        self._abandoned = True

    def _copy(self, stream: str, target: str) -> None:
        try:
            self._write(self._pieces(stream), target)
        except OSError:
            return  # whoever read the output has left

    def _pieces(self, stream: str) -> Iterator[str]:
        try:
            yield from self._client.executions.logs(self._execution, stream=stream, follow=True)
        except AttuneError as error:
            if not self._abandoned:
                yield f"attune: {stream} cannot be followed: {error.message}"

    def _write(self, pieces: Iterator[str], target: str) -> None:
        """Ends with a whole line, so that what follows stands on its own."""
        last = "\n"
        for text in pieces:
            _put(text, target)
            last = text[-1:] or last
        if last != "\n":
            _put("\n", target)


def _put(text: str, target: str) -> None:
    stream: TextIO = getattr(sys, target)
    stream.write(text)
    if not isinstance(stream, FileProxy):  # which would end the line at each flush
        stream.flush()


@contextmanager
def status_line(console: Console, what: str, *, shown: bool) -> Iterator[Status | None]:
    """A spinner with the latest status, on a terminal; what is printed meanwhile stands above it."""
    if not (shown and console.is_terminal):
        yield None
        return
    with console.status(what) as status:
        yield status


def followed(
    client: Client,
    execution: Execution,
    *,
    console: Console,
    targets: Mapping[str, str],
    spinner: bool,
    timeout: float | None,
) -> Execution:
    """The execution when it has ended, with its output copied to the targets on the way."""
    name = f"{execution.action_ref} #{execution.id}"
    output = Output(client, execution.id, targets)
    with status_line(console, name, shown=spinner) as line:

        def show(status: ExecutionStatus) -> None:
            if line is not None:
                line.update(f"{name} is {status}")

        output.start()
        try:
            ended = client.executions.wait(execution.id, timeout=timeout, on_status=show)
            output.join(_LAST_WORDS_SECONDS)
        finally:
            output.abandon()
    return ended
