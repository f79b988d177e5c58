"""Taskiq on RabbitMQ by taskiq-aio-pika: two worker processes, uvloop, acknowledged when the result is saved, as by default.

The publisher waits for the confirmation of each message; submissions are gathered, a hundred at a time, because there
is no call for many. `results` keeps results in Redis.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import ClassVar

import uvloop
from taskiq_aio_pika import AioPikaBroker
from taskiq_redis import RedisAsyncResultBackend

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program
from bench.peers.heat import main
from bench.peers.stored import StoredResults

CONTEST = contest()
RESULTS = CONTEST.variant == "results"
AT_ONCE = 100

broker = AioPikaBroker(CONTEST.servers["rabbitmq"], qos=AT_ONCE)
if RESULTS:
    broker = broker.with_result_backend(RedisAsyncResultBackend(CONTEST.servers["redis"]))


async def run(number: int) -> int:
    return note(number)


noop = broker.task(task_name="noop")(run)


class TaskiqPeer(Contestant):
    distribution: ClassVar[str] = "taskiq"
    unsupported: ClassVar[Mapping[str, str]] = {
        "limit1": "max-async-tasks is a limit of one worker, not of the work; no order is promised"
    }

    @property
    def results(self) -> bool:
        return RESULTS

    @property
    def remark(self) -> str:
        return "limit by max-async-tasks" if self.contest.limit else ""

    def workers(self) -> list[list[str]]:
        each = str((self.contest.limit or 2 * AT_ONCE) // self.processes)
        sizes = ("--workers", str(self.processes), "--max-async-tasks", each)
        quietly = ("--log-level", "ERROR")
        return [program("taskiq", "worker", "bench.peers.taskiq:broker", *sizes, *quietly)]

    async def open(self) -> None:
        await broker.startup()
        self._stored = StoredResults(CONTEST.servers["redis"])
        self._sent = 0

    async def submit(self, numbers: Sequence[int]) -> None:
        waiting = iter(numbers)
        while batch := list(islice(waiting, AT_ONCE)):
            await asyncio.gather(*(noop.kiq(number) for number in batch))
        self._sent += len(numbers)

    async def settle(self) -> bool:
        return RESULTS and await self._stored.wait_for(self._sent)

    async def answer(self, number: int) -> bool:
        if RESULTS:
            task = await noop.kiq(number)
            await task.wait_result(check_interval=0.001, timeout=60)
        return RESULTS

    async def close(self) -> None:
        self._stored.close()
        await broker.shutdown()


if __name__ == "__main__":
    main(TaskiqPeer, uvloop.new_event_loop)
