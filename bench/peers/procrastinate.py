"""Procrastinate on PostgreSQL by psycopg: two workers by its own command, ten jobs at once in each, woken by NOTIFY.

Submission is one batch. Limit 1 is a lock, which it promises to take in the order of submission; a worker with room
for a second job under that lock would look in vain and wait for its next poll, so each has room for one. Limit 10 is
the concurrency of the workers. The status of each job is kept, return values are not.
"""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from procrastinate import App, PsycopgConnector

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program, until
from bench.peers.heat import main

CONTEST = contest()
EACH = {"limit10": 5, "limit1": 1}.get(CONTEST.case, 10)
UNFINISHED = "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"

app = App(connector=PsycopgConnector(conninfo=CONTEST.servers["postgresql"], max_size=EACH + 4))


async def run(number: int) -> None:
    note(number)


noop = app.task(name="noop")(run)


class ProcrastinatePeer(Contestant):
    distribution: ClassVar[str] = "procrastinate"

    @property
    def results(self) -> bool:
        return False

    @property
    def remark(self) -> str:
        return {"limit10": "limit by the workers' concurrency", "limit1": "limit by a lock"}.get(
            self.contest.case, ""
        )

    @property
    def processes(self) -> int:
        return 1 if self.contest.case == "limit1" else 2

    def workers(self) -> list[list[str]]:
        name = ("--log-level", "error", "--app", "bench.peers.procrastinate.app")
        return [program("procrastinate", *name, "worker", "--concurrency", str(EACH))] * 2

    async def open(self) -> None:
        await app.open_async()
        await app.schema_manager.apply_schema_async()

    async def submit(self, numbers: Sequence[int]) -> None:
        lock = "one" if self.contest.limit == 1 else None
        jobs = noop.configure(lock=lock)
        await jobs.batch_defer_async(*({"number": number} for number in numbers))

    async def settle(self) -> bool:
        return await until(self._finished)

    async def _finished(self) -> bool:
        found = await app.connector.execute_query_one_async(UNFINISHED)
        return not found["jobs"]

    async def close(self) -> None:
        await app.close_async()


if __name__ == "__main__":
    main(ProcrastinatePeer, asyncio.new_event_loop)
