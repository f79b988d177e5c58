"""A steady flow of executions that write down each of their runs, and what became of them by the rows."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

import attune
from attune.client.requests import ExecutionRequest
from attune.kernel.errors import AttuneError
from attune.kernel.statuses import TERMINAL
from attune.pipeline.queues.decisions import Dropped, Item, Left
from attune.store.database import Tx
from tests.e2e.chaos import Watch

_RETRIED: Final = "max_retries: 5\nretry: {delay: 0.2, backoff: exponential, max_delay: 1}\n"
_FLOWING: Final = ("quick", "python", "slow", "flaky", "once")
_EVERY: Final = 0.15
_GIVE_UP: Final = 60.0

_OUTCOMES: Final = """
    SELECT id, action_ref, status, attempt, worker, result::text AS result, updated
      FROM execution WHERE id = ANY(:ids::bigint[])
"""
_ITEMS: Final = "SELECT items FROM decision"
_HELD: Final = """
    SELECT (SELECT count(*) FROM entry) + (SELECT count(*) FROM delay)
           + (SELECT coalesce(sum(active_count + queue_length), 0)::bigint FROM lane)
           + (SELECT coalesce(sum(active_count), 0)::bigint FROM pool)
"""


class Journal:
    """The file to which actions append the id of their execution when they start."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self.path.touch()

    def runs(self) -> Counter[int]:
        """How often each execution has begun to run."""
        return Counter(int(line) for line in self.path.read_text().split())

    def let_go(self, execution: int) -> None:
        """The first run of `net.held` waits for this; a later one does not wait."""
        Path(f"{self.path}.{execution}").touch()

    def pack(self, folder: Path) -> Path:
        """Shell and Python, quick and slow, with and without retries, under limits from 1 to 5; `long` and `held`
        have none."""
        note = f'echo "$ATTUNE_EXEC_ID" >> {self.path}\n'
        again = f'[ "$(grep -cx "$ATTUNE_EXEC_ID" {self.path})" -gt 1 ]'
        wait = f'while [ ! -e "{self.path}.$ATTUNE_EXEC_ID" ]; do sleep 0.05; done\n'
        held = f"{note}if {again}; then echo second; exit; fi\n{wait}echo first\n"
        python = (
            "import os\n"
            f"with open({str(self.path)!r}, 'a') as file:\n"
            "    file.write(os.environ['ATTUNE_EXEC_ID'] + '\\n')\n"
        )
        files = {
            "pack.yaml": "ref: net\nlabel: Net\nversion: 1.0.0\n",
            **_action("quick", 1, note),
            **_action("python", 2, python, "max_retries: 2\n", runner="python"),
            **_action("slow", 3, f"{note}sleep 0.3\n", "max_retries: 2\n"),
            **_action("flaky", 4, f"{note}{again}\n", _RETRIED),
            **_action("once", 5, f"{note}sleep 0.2\n", "on_worker_lost: fail\n"),
            **_action("long", None, f"{note}exec sleep 120\n", "max_retries: 2\n"),
            **_action("held", None, held, "max_retries: 2\n"),
        }
        for name, text in files.items():
            place = folder / "net" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return folder / "net"


def _action(
    name: str, limit: int | None, script: str, more: str = "", *, runner: str = "shell"
) -> dict[str, str]:
    entry_point = f"{name}.{'py' if runner == 'python' else 'sh'}"
    files = {
        f"actions/{name}.yaml": (
            f"ref: net.{name}\nlabel: Work\nrunner_type: {runner}\nentry_point: {entry_point}\n{more}"
        ),
        f"actions/{entry_point}": script,
    }
    if limit is not None:
        files[f"policies/{name}.yaml"] = (
            f"ref: net.{name}_limit\nname: Limit\naction_ref: net.{name}\n"
            f"concurrency: {{limit: {limit}, method: enqueue}}\n"
        )
    return files


class Stream:
    """Asks for executions without a pause, and insists: what was not answered is asked for again, under the
    same key, until it was accepted."""

    _numbers = count()

    def __init__(self, client: attune.Client) -> None:
        self.accepted: list[int] = []
        self._client = client
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._flow, name="stream")

    def __enter__(self) -> "Stream":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Return when the last request was accepted, too."""
        self._stopping.set()
        self._thread.join(_GIVE_UP)
        assert not self._thread.is_alive(), "the API never came back"

    def _flow(self) -> None:
        while not self._stopping.is_set():
            self._insist(self._some())
            self._stopping.wait(_EVERY)

    def _some(self) -> list[ExecutionRequest]:
        number = next(self._numbers)
        names = (_FLOWING[number % 5], _FLOWING[(number + 2) % 5])
        return [
            {"action_ref": f"net.{name}", "idempotency_key": f"{number}/{place}"}
            for place, name in enumerate(names)
        ]

    def _insist(self, wanted: list[ExecutionRequest]) -> None:
        deadline = time.monotonic() + _GIVE_UP
        while time.monotonic() < deadline:
            try:
                found = self._client.executions.execute_many(wanted)
            except AttuneError as error:
                assert error.retriable, error
                time.sleep(_EVERY)
            else:
                self.accepted += [each.id for each in found]
                return


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as its row tells it. `attempt` counts from 1, and with it those on record."""

    id: int
    action_ref: str
    status: str
    attempt: int
    worker: int | None
    result: str | None
    updated: datetime

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


class OutcomeWatch(Watch):
    def held(self) -> int:
        """How many entries, slots and delays there are."""
        return self._runner.run(self._database.read(_held))

    def ends(self) -> Counter[int]:
        """How often each execution has left its lane for good, by the log."""
        found = self._runner.run(self._database.read(_items))
        items = (item for each in found for item in each.items)
        return Counter(item.execution for item in items if isinstance(item, Left | Dropped))

    def outcomes(self, ids: Iterable[int]) -> dict[int, Outcome]:
        found = self._runner.run(self._database.read(_outcomes, list(ids)))
        return {one.id: one for one in found}


class _Items(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]


async def _items(tx: Tx) -> list[_Items]:
    return await tx.all(_Items, _ITEMS)


async def _held(tx: Tx) -> int:
    return await tx.one(int, _HELD)


async def _outcomes(tx: Tx, ids: list[int]) -> list[Outcome]:
    return await tx.all(Outcome, _OUTCOMES, ids=ids)
