"""An installation whose workers come, stop, pause and die, with work that a test holds and lets go."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

import attune
from attune.client.models import Execution
from attune.client.worker_models import Worker
from harness.ports import free_port
from harness.waiting import wait_until
from tests.e2e.attune_process import AttuneProcess, run_attune
from tests.e2e.installation import Installation

LONG: Final = 60.0
_FILES: Final = {
    "pack.yaml": "ref: field\nlabel: Field\nversion: 1.0.0\n",
    "actions/work.yaml": "ref: field.work\nlabel: Work\nrunner_type: shell\nentry_point: work.sh\n",
    # The number of its attempt is the number of its starts. It waits for the file that is named after both.
    "actions/work.sh": """\
name="$ATTUNE_ARTIFACTS_DIR/${HOLD:-free}"
echo "$ATTUNE_EXEC_ID" >>"$ATTUNE_ARTIFACTS_DIR/starts"
number=$(grep -cx "$ATTUNE_EXEC_ID" "$ATTUNE_ARTIFACTS_DIR/starts")
if [ -n "$HOLD" ]; then
    setsid sleep 300 &
    until [ -e "$name.$number" ]; do sleep 0.05; done
    kill $!
fi
echo "start $number"
""",
    "actions/burn.yaml": "ref: field.burn\nlabel: Burn\nrunner_type: python\nentry_point: burn.py\n",
    "actions/burn.py": """\
import os, pathlib
place = pathlib.Path(os.environ["ATTUNE_ARTIFACTS_DIR"], os.environ["HOLD"] + ".1")
while not place.exists():
    sum(range(100_000))
""",
    "policies/work.yaml": (
        "ref: field.two\nname: Two at a time\naction_ref: field.work\n"
        "concurrency: {limit: 2, method: enqueue}\n"
    ),
}
_OPEN: Final = """
    SELECT (SELECT count(*) FROM attune.entry), (SELECT count(*) FROM attune.delay),
           (SELECT coalesce(sum(active_count + queue_length), 0) FROM attune.lane),
           (SELECT coalesce(sum(active_count), 0) FROM attune.pool),
           (SELECT count(*) FROM attune.execution
             WHERE status NOT IN ('completed', 'failed', 'timeout', 'cancelled', 'abandoned'))
"""


class Fleet(Installation):
    """`rows` runs a statement on the database and gives its rows as text."""

    def __init__(self, folder: Path, rows: Callable[[str], str], **variables: str) -> None:
        super().__init__(folder / "data", **variables)
        self.rows = rows
        self.artifacts = self.folder / "artifacts"
        self._pack = _pack(folder)

    def come(self, *workers: str, executors: int = 1) -> attune.Client:
        """An API, executors and workers of these names, on a database that has the schema; and their pack."""
        port = free_port()
        self.variables["ATTUNE__SERVER__PORT"] = str(port)
        self.address = f"http://127.0.0.1:{port}"
        self.artifacts.mkdir(parents=True)
        coming = [self._start("api", "api")]
        coming += [self._start(f"executor-{n}", "executor") for n in range(1, executors + 1)]
        coming += [self.start_worker(name) for name in workers]
        for process in coming:
            process.wait_for_event("Ready.")
        client = self.client()
        client.packs.upload(self._pack)
        return client

    def start_workers(self, *names: str, **variables: str) -> None:
        """Also one of a name that was there before."""
        coming = [
            self._start(name, "worker", ATTUNE__WORKER__NAME=name, **variables) for name in names
        ]
        for process in coming:
            process.wait_for_event("Ready.")

    def start_executor(self, name: str, **variables: str) -> None:
        self._start(name, "executor", **variables).wait_for_event("Ready.")

    def send(self, name: str, number: signal.Signals) -> None:
        self.processes[name].signal(number)

    def kill(self, name: str) -> None:
        self.send(name, signal.SIGKILL)
        assert self.processes[name].wait() == -signal.SIGKILL

    def let_go(self, hold: str, attempt: int = 1) -> None:
        (self.artifacts / f"{hold}.{attempt}").touch()

    def starts(self) -> list[int]:
        """The executions whose action began, each as often as it did."""
        file = self.artifacts / "starts"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, as somebody uses it who is logged in."""
        return run_attune(
            *arguments, ATTUNE_URL=self.address, ATTUNE_TOKEN=self.token, HOME=str(self.folder)
        )

    def processes_of(self, execution: int) -> set[int]:
        """The living processes of an execution's action, wherever they have gone."""
        marks = {
            f"ATTUNE_ARTIFACTS_DIR={self.artifacts}".encode(),
            f"ATTUNE_EXEC_ID={execution}".encode(),
        }
        return {pid for pid, variables in _environments() if marks <= variables}

    def signal_processes_of(self, execution: int, number: signal.Signals) -> set[int]:
        """Until there is none that was not told: one may start another meanwhile. Those who were."""
        signalled: set[int] = set()
        while new := self.processes_of(execution) - signalled:
            for pid in new:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            signalled |= new
        return signalled

    def check_settled(self) -> None:
        """Everything has ended, nothing is held, and the log proves order and limits."""
        assert self.rows(_OPEN) == "0|0|0|0|0"
        proof = self.command("queue", "verify")
        assert (proof.returncode, proof.stderr) == (0, "")
        assert "Order and limits held" in proof.stdout


def held(client: attune.Client, hold: str, **options: Any) -> Execution:
    """One that begins, and then waits to be let go."""
    return client.executions.execute("field.work", env_vars={"HOLD": hold}, **options)


def until_running(client: attune.Client, *executions: Execution) -> None:
    for one in executions:
        until_status(client, one, "running")


def until_status(client: attune.Client, execution: Execution, status: str) -> None:
    wait_until(
        lambda: client.executions.get(execution.id).status == status,
        timeout=LONG,
        what=f"execution {execution.id} is {status}",
        interval=0.05,
    )


def until_worker(client: attune.Client, name: str, status: str) -> Worker:
    wait_until(
        lambda: client.workers.get(name).status == status,
        timeout=LONG,
        what=f"worker {name} is {status}",
        interval=0.05,
    )
    return client.workers.get(name)


def ended(client: attune.Client, execution: Execution) -> Execution:
    return client.executions.wait(execution.id, timeout=LONG)


def told(process: AttuneProcess, sentence: str) -> list[dict[str, Any]]:
    """The lines of its log so far with this sentence."""
    lines = [msgspec.json.decode(line) for line in list(process.log) if line.startswith("{")]
    return [line for line in lines if line["event"] == sentence]


def _pack(folder: Path) -> Path:
    for name, text in _FILES.items():
        place = folder / "field" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / "field"


def _environments() -> Iterator[tuple[int, set[bytes]]]:
    """Of the processes that live; a body has none."""
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                yield int(place.name), set((place / "environ").read_bytes().split(b"\0"))
            except OSError:
                continue
