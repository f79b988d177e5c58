"""Dramatiq on RabbitMQ: as many processes as cores with eight threads each, as by default.

Messages are persistent and acknowledged after the run; the publisher does not wait for confirmations, as by default.
`results` keeps results in Redis. A group would send its messages one by one too.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program
from bench.peers.heat import main
from bench.peers.stored import StoredResults

CONTEST = contest()
RESULTS = CONTEST.variant == "results"

broker = RabbitmqBroker(url=CONTEST.servers["rabbitmq"])
if RESULTS:
    broker.add_middleware(Results(backend=RedisBackend(url=CONTEST.servers["redis"])))
dramatiq.set_broker(broker)


def run(number: int) -> int | None:
    """What is returned and not kept would be warned about."""
    done = note(number)
    return done if RESULTS else None


options = {"store_results": True} if RESULTS else {}
noop = dramatiq.actor(run, actor_name="noop", **options)


class DramatiqPeer(Contestant):
    distribution: ClassVar[str] = "dramatiq"
    unsupported: ClassVar[Mapping[str, str]] = {
        "limit1": "its limiters put a job off and try again later, so no order is kept"
    }

    @property
    def results(self) -> bool:
        return RESULTS

    @property
    def remark(self) -> str:
        return "limit by the number of threads" if self.contest.limit else ""

    def workers(self) -> list[list[str]]:
        threads = (self.contest.limit or 16) // self.processes
        sizes = ("--processes", str(self.processes), "--threads", str(threads))
        return [program("dramatiq", "bench.peers.dramatiq", *sizes)]

    async def open(self) -> None:
        self._stored = StoredResults(CONTEST.servers["redis"])
        self._sent = 0

    async def submit(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            noop.send(number)
        self._sent += len(numbers)

    async def settle(self) -> bool:
        return RESULTS and await self._stored.wait_for(self._sent)

    async def answer(self, number: int) -> bool:
        if RESULTS:
            noop.send(number).get_result(block=True)
        return RESULTS

    async def close(self) -> None:
        self._stored.close()
        broker.close()


if __name__ == "__main__":
    main(DramatiqPeer)
