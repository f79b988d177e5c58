"""PgQueuer on PostgreSQL by asyncpg: two workers by its own command, which runs on uvloop, and its durable tables.

`plain` takes jobs in batches of a hundred; `ordered` has one worker only, which is what it takes to keep the order.
It keeps outcomes in its log and return values nowhere: in `results`, which is ordered too, each job writes its own to a
table. A limit is the entrypoint's `concurrency_limit`, held in the database across workers; the status of a job is written
when a batch is full, so the batch is no larger than the limit.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

import asyncpg
import uvloop
from pgqueuer import Job, PgQueuer, Queries

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program, until
from bench.peers.heat import main

CONTEST = contest()
URL = CONTEST.servers["postgresql"]
BATCH = 100
KEEPS_RESULTS = CONTEST.variant == "results"
RESULTS = "CREATE TABLE IF NOT EXISTS result (job bigint PRIMARY KEY, value jsonb NOT NULL)"
KEEP = "INSERT INTO result (job, value) VALUES ($1, $2)"


class Jobs:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def run(self, job: Job) -> None:
        assert job.payload is not None
        number = note(int(job.payload))
        if KEEPS_RESULTS:
            await self._pool.execute(KEEP, job.id, str(number))


@asynccontextmanager
async def create() -> AsyncIterator[PgQueuer]:
    """What the worker's command runs."""
    async with asyncpg.create_pool(URL, min_size=2, max_size=5) as pool:
        queuer = PgQueuer.from_asyncpg_pool(pool)
        queuer.entrypoint("noop", concurrency_limit=CONTEST.limit or 0)(Jobs(pool).run)
        yield queuer


class PgQueuerPeer(Contestant):
    distribution: ClassVar[str] = "pgqueuer"
    unsupported: ClassVar[Mapping[str, str]] = {}

    @property
    def results(self) -> bool:
        return KEEPS_RESULTS

    @property
    def remark(self) -> str:
        return "limit by concurrency_limit" if self.contest.limit else ""

    @property
    def processes(self) -> int:
        return 2 if self.contest.variant == "plain" else 1

    def workers(self) -> list[list[str]]:
        batch = 1 if self.contest.case == "latency" else self.contest.limit or BATCH
        options = ("--batch-size", str(batch), "--log-level", "ERROR")
        return [
            program("pgqueuer", "run", "bench.peers.pgqueuer:create", *options)
        ] * self.processes

    async def open(self) -> None:
        self._connection = await asyncpg.connect(URL)
        self._queries = Queries.from_asyncpg_connection(self._connection)
        await self._queries.install()
        await self._connection.execute(RESULTS)

    async def submit(self, numbers: Sequence[int]) -> None:
        payloads = [str(number).encode() for number in numbers]
        await self._queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))

    async def settle(self) -> bool:
        """A job leaves the queue's table when its end is written to the log."""
        return await until(self._empty)

    async def _empty(self) -> bool:
        return not await self._queries.queue_size()

    async def close(self) -> None:
        await self._connection.close()


if __name__ == "__main__":
    main(PgQueuerPeer, uvloop.new_event_loop)
