"""A real `attune` process under test: started, watched through its output, signalled, and never left behind."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

PATIENCE = 60.0
COMMAND = Path(sys.executable).with_name("attune")


class AttuneProcess:
    """`log` holds the lines of standard error, which are JSON; `output` those of standard output."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self.log: list[str] = []
        self.output: list[str] = []
        self._seen = 0
        self._lines: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(variables),
        )
        self._threads = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self._process.stderr, self.log), (self._process.stdout, self.output))
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, stream: Any, lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))
            self._lines.put(None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for_event(self, sentence: str) -> dict[str, Any]:
        """The first log line, not waited for before, whose event is this sentence."""
        deadline = time.monotonic() + PATIENCE
        while True:
            while self._seen < len(self.log):
                line = self.log[self._seen]
                self._seen += 1
                if line.startswith("{") and msgspec.json.decode(line)["event"] == sentence:
                    return dict(msgspec.json.decode(line))
            self._wait_for_a_line(deadline, sentence)

    def _wait_for_a_line(self, deadline: float, what: str) -> None:
        try:
            self._lines.get(timeout=max(deadline - time.monotonic(), 0))
        except queue.Empty:
            raise AssertionError(f"no {what!r} from attune:\n" + "\n".join(self.log)) from None
        if self._process.poll() is not None and not any(t.is_alive() for t in self._threads):
            raise AssertionError(f"attune ended before {what!r}:\n" + "\n".join(self.log))

    def address(self) -> str:
        """Where `attune up` says that it can be reached."""
        self.wait_for_event("Ready.")
        deadline = time.monotonic() + PATIENCE
        while not self.output:
            self._wait_for_a_line(deadline, "address")
        return self.output[0].split()[-1]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code."""
        try:
            code = self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("attune did not end:\n" + "\n".join(self.log)) from None
        for thread in self._threads:
            thread.join()
        return code

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ATTUNE")}
    return {**kept, **variables}


def run_attune(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself."""
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=clean_environment(variables),
    )
