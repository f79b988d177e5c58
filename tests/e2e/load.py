"""A steady load on an installation, asked for again until it is acknowledged; its actions keep a journal."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from attune.client import Client
from attune.client.errors import ServerAway, ServerFault
from attune.client.requests import ExecutionRequest

RATE: Final = 200  # executions a second
_BATCH: Final = 50
_SHELL: Final = 5  # of each batch, as many as two cores spawn beside the servers
_SENDERS: Final = 8
_AGAIN: Final = 0.2

# What each action does once it has written down that it began.
_SCRIPTS: Final = {
    "work": "",
    "slow": "exec sleep 2",
    "endless": "exec sleep 300",
    # Fails the first time.
    "twice": '[ "$(grep -cx "$ATTUNE_EXEC_ID" {journal})" = 2 ]',
    "rated": "",
    "followed": "",
    "held": "",
    "ghostly": "",
}
_POLICIES: Final = {
    "work": "concurrency: {limit: 8, method: enqueue}",
    "rated": "rate_limit: {max_executions: 1, window_seconds: 1}",
    "followed": "concurrency: {limit: auto, method: enqueue}",
}


def journalling(folder: Path) -> Path:
    """A pack whose actions write their execution into `folder`/journal when they begin."""
    journal = folder / "journal"
    journal.touch()
    files = {"pack.yaml": "ref: load\nlabel: Load\nversion: 1.0.0\n"}
    for name, script in _SCRIPTS.items():
        say = f'echo "$ATTUNE_EXEC_ID" >> {journal}\n'
        files[f"actions/{name}.sh"] = say + script.replace("{journal}", str(journal)) + "\n"
        files[f"actions/{name}.yaml"] = (
            f"ref: load.{name}\nlabel: {name}\nrunner_type: shell\nentry_point: {name}.sh\n"
        )
    for name, rule in _POLICIES.items():
        files[f"policies/{name}.yaml"] = (
            f"ref: load.{name}_policy\nname: {name}\naction_ref: load.{name}\n{rule}\n"
        )
    for name, text in files.items():
        place = folder / "load" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder / "load"


def starts(folder: Path) -> Counter[int]:
    """How often each execution began, by its own word."""
    return Counter(int(line) for line in (folder / "journal").read_text().split())


class Load:
    """`acknowledged` has the execution of each key; `faults` counts the answers that made a sender try again."""

    def __init__(self, client: Callable[[], Client], seconds: float) -> None:
        self.acknowledged: dict[str, int] = {}
        self.faults: Counter[str] = Counter()
        self.total = int(seconds * RATE)
        self._due = itertools.count()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._enough = threading.Event()
        self._broken: list[BaseException] = []
        self._senders = [
            threading.Thread(target=self._send, args=(client(),), daemon=True)
            for _ in range(_SENDERS)
        ]

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        for sender in self._senders:
            sender.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self.finish()

    def finish(self) -> None:
        """Return when every batch was acknowledged."""
        for sender in self._senders:
            sender.join()
        if self._broken:
            raise self._broken[0]

    def reached(self, share: float) -> bool:
        """Whether so much of the load has been acknowledged; raises what stopped a sender."""
        if self._broken:
            raise self._broken[0]
        return len(self.acknowledged) >= share * self.total

    def _send(self, client: Client) -> None:
        try:
            while (number := self._next()) is not None and not self._enough.is_set():
                self._until_acknowledged(client, _batch(number))
        except BaseException as error:  # noqa: BLE001 - raised where the load is finished
            self._broken.append(error)

    def _next(self) -> int | None:
        """The next batch, when its time has come."""
        with self._lock:
            number = next(self._due)
        if number * _BATCH >= self.total:
            return None
        self._enough.wait(max(self._began + number * _BATCH / RATE - time.monotonic(), 0))
        return number

    def _until_acknowledged(self, client: Client, wanted: list[ExecutionRequest]) -> None:
        while not self._enough.is_set():
            try:
                made = client.executions.execute_many(wanted)
            except ServerAway:
                self.faults["away"] += 1
            except ServerFault as error:
                self.faults[f"{error.status} {error.code}"] += 1
            else:
                keys = [each["idempotency_key"] for each in wanted]
                self.acknowledged.update(zip(keys, (one.id for one in made), strict=True))
                return
            self._enough.wait(_AGAIN)


def _batch(number: int) -> list[ExecutionRequest]:
    return [
        {
            "action_ref": "load.work" if place < _SHELL else "core.noop",
            "idempotency_key": f"load-{number}-{place}",
        }
        for place in range(_BATCH)
    ]
