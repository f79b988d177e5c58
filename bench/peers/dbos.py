"""DBOS on PostgreSQL (`plain`) or SQLite (`sqlite`): workers that launch it and listen to one queue.

Free work on PostgreSQL has two workers; a SQLite file is for one process, and under a limit, as on an idle system, a
second one only competes for the queue's lock. The queue is looked at every 5 ms in place of every second. Submissions
are made a hundred to a transaction, the nearest there is to a call for many. A limit is the queue's own, held in the
database. Results are kept; latency ends when the job runs, because to wait for a result is to poll the database.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig

from bench.peers.contest import contest, note
from bench.peers.contestant import Contestant, program, until
from bench.peers.heat import main

CONTEST = contest()
SQLITE = CONTEST.variant == "sqlite"
POSTGRESQL_URL = CONTEST.servers["postgresql"].replace("postgresql://", "postgresql+psycopg://")
URL = f"sqlite:///{Path(CONTEST.scratch) / 'dbos.sqlite'}" if SQLITE else POSTGRESQL_URL
AT_ONCE = 100
VERSION = "1"
JOB: Any = {"queue_name": "peer", "workflow_name": "noop", "app_version": VERSION}

CONFIG: DBOSConfig = {
    "name": "peer",
    "system_database_url": URL,
    "application_version": VERSION,
    "log_level": "ERROR",
}

noop = DBOS.workflow(name="noop")(note)


def work() -> None:
    """A worker, until it is told to end."""
    DBOS(config=CONFIG)
    DBOS.launch()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    DBOS.destroy()


class DbosPeer(Contestant):
    distribution: ClassVar[str] = "dbos"

    @property
    def results(self) -> bool:
        return True

    @property
    def remark(self) -> str:
        return "limit by the queue's global_concurrency" if self.contest.limit else ""

    @property
    def processes(self) -> int:
        return 2 if self.contest.case == "free" and not SQLITE else 1

    def workers(self) -> list[list[str]]:
        return [program("bench.peers.dbos", "--work")] * self.processes

    async def open(self) -> None:
        await asyncio.to_thread(self._prepare)
        self._engine = sqlalchemy.create_engine(URL)
        self._client = DBOSClient(system_database_url=URL, application_name="peer")

    def _prepare(self) -> None:
        """The schema and the queue, by an instance that is gone before the clock starts."""
        DBOS(config=CONFIG)
        DBOS.launch()
        DBOS.register_queue(
            "peer",
            global_concurrency=self.contest.limit,
            polling_interval_sec=0.005,
        )
        DBOS.destroy()

    async def submit(self, numbers: Sequence[int]) -> None:
        waiting = iter(numbers)
        while batch := list(islice(waiting, AT_ONCE)):
            with self._engine.begin() as connection:
                for number in batch:
                    self._client.enqueue_in_transaction(connection, JOB, number)

    async def settle(self) -> bool:
        return await until(self._finished)

    async def _finished(self) -> bool:
        return not self._client.list_workflows(
            status=["ENQUEUED", "PENDING"], limit=1, load_input=False, load_output=False
        )

    async def close(self) -> None:
        self._client.destroy()
        self._engine.dispose()


if __name__ == "__main__":
    if "--work" in sys.argv:
        work()
    else:
        main(DbosPeer)
