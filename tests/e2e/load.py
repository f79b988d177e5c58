"""A steady load on an installation, asked for again until it is acknowledged; its actions keep a journal."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from attune.client import Client
from attune.client.errors import ServerAway, ServerFault
from attune.client.requests import ExecutionRequest
from harness.waiting import wait_until

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
    """Asks for so much a second, from entering to leaving, but for pauses.

    `acknowledged` has the execution of each key; `faults` counts the answers that made a sender try again.
    """

    def __init__(self, client: Callable[[], Client]) -> None:
        self.acknowledged: dict[str, int] = {}
        self.faults: Counter[str] = Counter()
        self._batches = 0
        self._next_at = 0.0
        self._lock = threading.Lock()
        self._going, self._over, self._left = (threading.Event() for _ in range(3))
        self._broken: list[BaseException] = []
        self._senders = [
            threading.Thread(target=self._send, args=(client(),), daemon=True)
            for _ in range(_SENDERS)
        ]

    def __enter__(self) -> Self:
        self._going.set()
        for sender in self._senders:
            sender.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self.finish()

    @property
    def total(self) -> int:
        """How many were asked for."""
        return self._batches * _BATCH

    def finish(self) -> None:
        """Ask for nothing more; return when all was acknowledged."""
        self._over.set()
        self._going.set()
        for sender in self._senders:
            sender.join()
        self._check()

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def flow(self, seconds: float) -> None:
        """Return when as much more was acknowledged as is asked for in that time."""
        goal = len(self.acknowledged) + seconds * RATE

        def is_reached() -> bool:
            self._check()
            return len(self.acknowledged) >= goal

        wait_until(is_reached, timeout=60, what=f"{goal:g} acknowledged")

    def _check(self) -> None:
        """Raises what stopped a sender."""
        if self._broken:
            raise self._broken[0]

    def _send(self, client: Client) -> None:
        try:
            while (number := self._next()) is not None:
                self._until_acknowledged(client, _batch(number))
        except BaseException as error:  # noqa: BLE001 - raised where the load is waited for
            self._broken.append(error)

    def _next(self) -> int | None:
        """The number of the next batch, when its time has come; time that was missed is not made up for."""
        self._going.wait()
        with self._lock:
            wait = max(self._next_at - time.monotonic(), 0)
            if self._over.wait(wait):
                return None
            self._next_at = max(self._next_at, time.monotonic()) + _BATCH / RATE
            self._batches += 1
            return self._batches

    def _until_acknowledged(self, client: Client, wanted: list[ExecutionRequest]) -> None:
        while not self._left.is_set():
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
            self._left.wait(_AGAIN)


def _batch(number: int) -> list[ExecutionRequest]:
    return [
        {
            "action_ref": "load.work" if place < _SHELL else "core.noop",
            "idempotency_key": f"load-{number}-{place}",
        }
        for place in range(_BATCH)
    ]
