"""How many executions are on their way and how many are done, read from the database beside Attune's own processes."""

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Final, Protocol

import asyncpg

# Both are kept in the transaction that ends an execution; there are few lanes and many executions.
_UNDER_WAY: Final = "SELECT coalesce(sum(queue_length + active_count), 0) FROM lane"
_COMPLETED: Final = "SELECT count(*) FROM execution WHERE status = 'completed'"
_INTERVAL: Final = 0.01
_PATIENCE: Final = 600.0


class Books(Protocol):
    async def value(self, sql: str) -> int: ...

    async def close(self) -> None: ...


class SQLiteBooks:
    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)

    async def value(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchone()[0])

    async def close(self) -> None:
        self._connection.close()


class PostgreSQLBooks:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "PostgreSQLBooks":
        return cls(await asyncpg.connect(url, server_settings={"search_path": "attune"}))

    async def value(self, sql: str) -> int:
        return int(await self._connection.fetchval(sql))

    async def close(self) -> None:
        await self._connection.close()


class NotFinished(Exception):
    """Executions are missing: a figure without them would be a lie."""


async def completed(books: Books) -> int:
    return await books.value(_COMPLETED)


async def finished(books: Books, total: int) -> float:
    """When nothing was under way any more, by `time.perf_counter`; with `total` completed by then."""
    deadline = time.monotonic() + _PATIENCE
    done = 0
    while time.monotonic() < deadline:
        if await books.value(_UNDER_WAY) == 0:
            at = time.perf_counter()
            done = await completed(books)
            if done == total:
                return at
        await asyncio.sleep(_INTERVAL)
    raise NotFinished(f"{done:,} of {total:,} executions completed within {_PATIENCE:g} s")
