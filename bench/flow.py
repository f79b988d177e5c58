"""Executions of core.noop through the whole flow, on both profiles, beside the bare database doing the same rows.

The baselines insert, claim and finish a row in batches of ten, a commit each time: what any queue on that database
must do at the least.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg

from attune.api.execution_feed import feed_queue
from attune.kernel.configuration import load_settings
from attune.kernel.envelope import Envelope
from attune.kernel.messages import ExecutionStatusChanged
from attune.kernel.statuses import TERMINAL
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.telemetry.logs import configure_logs
from bench.measure import Case, Gauge
from bench.pipeline.latency import Ends, percentiles
from bench.results import MILLISECONDS
from harness.control_plane import ControlPlane
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ

REQUEST = Request(action_ref="core.noop")


@asynccontextmanager
async def cases(quick: bool) -> AsyncIterator[list[Case | Gauge]]:
    count = 500 if quick else 2000
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        postgresql = stack.enter_context(PostgreSQL())
        rabbitmq = stack.enter_context(RabbitMQ())
        url = postgresql.create_database()
        embedded = await plane(stack, ATTUNE__DATA_DIR=str(folder / "embedded"))
        servers = await plane(
            stack,
            ATTUNE__DATA_DIR=str(folder / "servers"),
            ATTUNE__DATABASE__URL=url,
            ATTUNE__MESSAGE_QUEUE__URL=rabbitmq.url,
        )
        bare_url = postgresql.create_database()
        yield [
            Case("SQLite, bare", lambda: bare_sqlite(folder / "bare.db", count)),
            Case("embedded, free", lambda: free(embedded, count), "SQLite, bare"),
            await latency("embedded", embedded, count // 10),
            Case("PostgreSQL, bare", lambda: bare_postgresql(bare_url, count)),
            Case("PostgreSQL and RabbitMQ, free", lambda: free(servers, count), "PostgreSQL, bare"),
            await latency("PostgreSQL and RabbitMQ", servers, count // 10),
        ]


async def plane(stack: AsyncExitStack, **variables: str) -> ControlPlane:
    """An executor and a worker of ten slots, the stages in one process."""
    settings = load_settings({"ATTUNE__LOG__LEVEL": "warning", **variables})
    configure_logs(settings.log)
    made = await stack.enter_async_context(ControlPlane(settings))
    await made.start_worker()
    await made.start_executor()
    return made


async def free(plane: ControlPlane, count: int) -> int:
    """All accepted in one call, none held back but by the worker's ten slots."""
    await plane.flow.request(Order((REQUEST,) * count))
    await plane.over()
    return count


async def latency(name: str, plane: ControlPlane, count: int) -> Gauge:
    """One after the other, from the request to the news of its end on the bus, with no network but the servers'."""
    ends = Ends()

    async def hear(envelope: Envelope) -> None:
        for item in envelope.items:
            if isinstance(item, ExecutionStatusChanged) and item.status in TERMINAL:
                await ends.saw(item.execution_id)

    queue = feed_queue("bench")
    await plane.bus.declare(queue)
    await plane.bus.consume(queue.name, hear)

    async def singly() -> Mapping[str, float]:
        return percentiles([await _one(plane, ends) for _ in range(count)])

    return Gauge(f"{name}, idle latency", MILLISECONDS, singly)


async def _one(plane: ControlPlane, ends: Ends) -> float:
    start = time.perf_counter()
    [execution] = await plane.flow.request(Order((REQUEST,)))
    return await ends.of(execution.id) - start


_JOB = "CREATE TABLE IF NOT EXISTS job (id BIGINT PRIMARY KEY, status TEXT NOT NULL, result TEXT)"
_WAITING = "SELECT id FROM job WHERE status = 'waiting' ORDER BY id LIMIT 10"


async def bare_sqlite(file: Path, count: int) -> int:
    await asyncio.to_thread(_sqlite_jobs, file, count)
    return count


def _sqlite_jobs(file: Path, count: int) -> None:
    with sqlite3.connect(file, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(_JOB)
        connection.execute(
            "CREATE INDEX IF NOT EXISTS waiting ON job (id) WHERE status = 'waiting'"
        )
        first = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM job").fetchone()[0]
        ids = [(n,) for n in range(first, first + count)]
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO job VALUES (?, 'waiting', NULL)", ids)
        connection.execute("COMMIT")
        while batch := connection.execute(_WAITING).fetchall():
            for status in ("running", "done"):
                connection.execute("BEGIN")
                rows = [(status, *row) for row in batch]
                connection.executemany("UPDATE job SET status = ? WHERE id = ?", rows)
                connection.execute("COMMIT")


async def bare_postgresql(url: str, count: int) -> int:
    connection = await asyncpg.connect(url)
    await connection.execute(_JOB)
    await connection.execute(
        "CREATE INDEX IF NOT EXISTS waiting ON job (id) WHERE status = 'waiting'"
    )
    first = await connection.fetchval("SELECT coalesce(max(id), 0) + 1 FROM job")
    ids = list(range(first, first + count))
    await connection.execute(
        "INSERT INTO job SELECT id, 'waiting' FROM unnest($1::bigint[]) id", ids
    )
    while batch := [row[0] for row in await connection.fetch(_WAITING)]:
        for status in ("running", "done"):
            await connection.execute(
                "UPDATE job SET status = $1 WHERE id = ANY($2::bigint[])", status, batch
            )
    await connection.close()
    return count
