"""Celery on RabbitMQ: prefork workers, as many processes as cores, and the prefetch that its guide gives for short tasks.

Under a limit of ten its pool is ten threads, because ten processes on two cores are slower.
Messages are persistent, as by default. `plain` keeps no results; `results` keeps them in Redis; `late` acknowledges
after the run and waits for the broker's confirmation of each message, which is what keeps jobs through a crash.
There is no call for many tasks: a group would send them one by one too.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from celery import Celery

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program
from bench.peers.heat import main
from bench.peers.stored import StoredResults

CONTEST = contest()
RESULTS = CONTEST.variant == "results"
LATE = CONTEST.variant == "late"

app = Celery(
    "peer",
    broker=CONTEST.servers["rabbitmq"],
    backend=CONTEST.servers["redis"] if RESULTS else None,
)
app.conf.update(
    task_ignore_result=not RESULTS,
    task_acks_late=LATE,
    broker_transport_options={"confirm_publish": LATE},
    worker_prefetch_multiplier=64,
    worker_hijack_root_logger=False,
)
noop = app.task(name="noop")(note)


class CeleryPeer(Contestant):
    distribution: ClassVar[str] = "celery"
    unsupported: ClassVar[Mapping[str, str]] = {
        "limit1": "the pool's size is a limit of one worker, not of the work; no order is promised"
    }

    @property
    def results(self) -> bool:
        return RESULTS

    @property
    def remark(self) -> str:
        return "limit by the size of the pool" if self.contest.limit else ""

    @property
    def processes(self) -> int:
        return 1 if self.contest.limit else 2

    def workers(self) -> list[list[str]]:
        size = ("-P", "threads", "-c", "10") if self.contest.limit else ("-P", "prefork", "-c", "2")
        quietly = ("--loglevel", "error", "--without-gossip", "--without-mingle")
        return [program("celery", "-A", "bench.peers.celery", "worker", *quietly, *size)]

    async def open(self) -> None:
        self._connection = app.connection_for_write()
        self._producer = app.amqp.Producer(self._connection, auto_declare=False)
        self._stored = StoredResults(CONTEST.servers["redis"])
        self._sent = 0

    async def submit(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            noop.apply_async((number,), producer=self._producer)
        self._sent += len(numbers)

    async def settle(self) -> bool:
        return RESULTS and await self._stored.wait_for(self._sent)

    async def answer(self, number: int) -> bool:
        if RESULTS:
            noop.apply_async((number,), producer=self._producer).get()
        return RESULTS

    async def close(self) -> None:
        self._stored.close()
        self._connection.release()


if __name__ == "__main__":
    main(CeleryPeer)
