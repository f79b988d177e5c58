"""arq on Redis: two worker processes of ten jobs each, as by default, on uvloop, with a line in the log for trouble only.

Workers look every 10 ms in place of every half second, which is what a user does who wants speed. Results are kept, as
by default. There is no call for many jobs; submissions are gathered, a hundred at a time, on one pool.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.constants import default_queue_name

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program, until
from bench.peers.heat import main

CONTEST = contest()
SETTINGS = RedisSettings.from_dsn(CONTEST.servers["redis"])
AT_ONCE = 100
WORKERS = 2
QUIETLY = {"version": 1, "loggers": {"arq": {"level": "WARNING"}}}


asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


async def noop(context: dict[str, Any], number: int) -> int:
    del context
    return note(number)


class WorkerSettings:
    """What the worker's command reads."""

    functions: ClassVar = [noop]
    redis_settings = SETTINGS
    max_jobs = (CONTEST.limit or 10 * WORKERS) // WORKERS
    poll_delay = 0.01


class ArqPeer(Contestant):
    distribution: ClassVar[str] = "arq"
    unsupported: ClassVar[Mapping[str, str]] = {
        "limit1": "max_jobs is a limit of one worker, not of the work; no order is promised"
    }

    @property
    def results(self) -> bool:
        return True

    @property
    def remark(self) -> str:
        return "limit by max_jobs" if self.contest.limit else ""

    def workers(self) -> list[list[str]]:
        module = "bench.peers.arq"
        quietly = ("--custom-log-dict", f"{module}.QUIETLY")
        return [program("arq", f"{module}.WorkerSettings", *quietly)] * WORKERS

    async def open(self) -> None:
        self._pool = await create_pool(SETTINGS)

    async def submit(self, numbers: Sequence[int]) -> None:
        waiting = iter(numbers)
        while batch := list(islice(waiting, AT_ONCE)):
            await asyncio.gather(*(self._pool.enqueue_job("noop", number) for number in batch))

    async def settle(self) -> bool:
        """A job leaves the queue in the transaction that writes its result."""
        return await until(self._empty)

    async def _empty(self) -> bool:
        return not await self._pool.zcard(default_queue_name)

    async def answer(self, number: int) -> bool:
        job = await self._pool.enqueue_job("noop", number)
        assert job is not None
        await job.result(poll_delay=0.001)
        return True

    async def close(self) -> None:
        await self._pool.aclose()


if __name__ == "__main__":
    main(ArqPeer, uvloop.new_event_loop)
