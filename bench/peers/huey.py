"""Huey on SQLite with fsync: its consumer with two processes, and results, as by default.

Workers look every 10 ms in place of every 100 ms. Each submission is a commit of its own; there is no call for many.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from huey import SqliteHuey

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program, until
from bench.peers.heat import main

CONTEST = contest()

huey = SqliteHuey(filename=str(Path(CONTEST.scratch) / "huey.db"), fsync=True, timeout=30)
noop = huey.task(name="noop")(note)


class HueyPeer(Contestant):
    distribution: ClassVar[str] = "huey"
    unsupported: ClassVar[Mapping[str, str]] = {
        "limit1": "the number of workers is a limit of one consumer; a lock raises, it does not wait"
    }

    @property
    def results(self) -> bool:
        return True

    @property
    def remark(self) -> str:
        return "limit by the number of workers" if self.contest.limit else ""

    @property
    def processes(self) -> int:
        return 1 if self.contest.limit else 2

    def workers(self) -> list[list[str]]:
        size = ("-w", "10", "-k", "thread") if self.contest.limit else ("-w", "2", "-k", "process")
        looking = ("--delay", "0.01", "--max-delay", "0.01")
        options = ("--quiet", "--no-periodic", *size, *looking)
        return [program("huey.bin.huey_consumer", "bench.peers.huey.huey", *options)]

    async def open(self) -> None:
        self._expected = 0

    async def submit(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            noop(number)
        self._expected += len(numbers)

    async def settle(self) -> bool:
        return await until(self._finished)

    async def _finished(self) -> bool:
        return bool(huey.result_count() == self._expected)

    async def close(self) -> None:
        huey.storage.close()


if __name__ == "__main__":
    main(HueyPeer)
