"""SQLite: one writer thread that shares a commit between the steps that wait, and readers beside it.

A step's coroutine is driven to its end inside the writer's thread: its awaits never suspend, so a whole
transaction costs one hop between threads. Each step has its savepoint in the shared commit; one that
fails is undone alone. Nobody is answered before the commit that holds his step is on the disk.
"""

import asyncio
import contextvars
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from attune.kernel.clock import Clock
from attune.kernel.errors import DatabaseUnavailable
from attune.store.database import Database, Step, Tx
from attune.store.ownership import Ownership
from attune.store.sqlite_errors import translated
from attune.store.sqlite_tx import IdCounters, SQLiteTx, drive

T = TypeVar("T")
P = ParamSpec("P")

_BATCH_STEPS: Final = 256
_BATCH_SECONDS: Final = 0.005
_READERS: Final = 2

_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -32768",
)


@dataclass(slots=True, eq=False)
class _Job:
    """A step on its way through a thread, and who waits for it."""

    step: Callable[[Tx], Coroutine[Any, Any, Any]]
    waiter: asyncio.Future[Any]
    context: contextvars.Context
    tx: SQLiteTx | None = None
    result: Any = None
    error: BaseException | None = None

    def perform(self, tx: SQLiteTx) -> None:
        """Run the step; its failure is its own and is kept for its waiter."""
        self.tx = tx
        try:
            self.result = self.context.run(drive, self.step(tx))
            self.error = tx.failure
        except BaseException as error:  # noqa: BLE001 - whatever a step raises belongs to its waiter
            self.error = error

    def settle(self, database: "SQLiteDatabase") -> None:
        """On the event loop: the effects of what was committed, then the answer."""
        if self.error is None and self.tx is not None:
            for effect in self.tx.effects:
                effect()
            database.deliver(self.tx.wakes)
        if self.waiter.done():
            return
        if self.error is None:
            self.waiter.set_result(self.result)
        else:
            self.waiter.set_exception(self.error)


_Jobs = queue.SimpleQueue[_Job | None]


class SQLiteDatabase(Database):
    def __init__(
        self, path: Path, clock: Clock, source: random.Random, busy_timeout: float = 0.5
    ) -> None:
        super().__init__(clock, source)
        self._path = path
        self._busy_timeout = busy_timeout
        self._ownership = Ownership(path)
        self._writes: _Jobs = queue.SimpleQueue()
        self._reads: _Jobs = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._ownership.take()
        loop = asyncio.get_running_loop()
        ids = IdCounters()
        try:
            writer = _Writer(self._connect(), self._writes, ids, self._answerer(loop))
            readers = [
                _Reader(self._connect(read_only=True), self._reads, ids, self._answerer(loop))
                for _ in range(_READERS)
            ]
        except sqlite3.Error as error:
            self._ownership.release()
            raise translated(error) or error from error
        self._threads = [
            threading.Thread(target=worker.work, name=f"attune-sqlite-{i}", daemon=True)
            for i, worker in enumerate([writer, *readers])
        ]
        for thread in self._threads:
            thread.start()

    async def close(self) -> None:
        threads, self._threads = self._threads, []
        if not threads:
            return
        self._writes.put(None)
        for _ in range(_READERS):
            self._reads.put(None)
        for thread in threads:
            await asyncio.to_thread(thread.join)
        self._ownership.release()

    def deliver(self, wakes: set[tuple[str, str]]) -> None:
        self._deliver(wakes)

    async def _run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._submit(self._writes, lambda tx: step(tx, *args, **kwargs))

    async def _read(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._submit(self._reads, lambda tx: step(tx, *args, **kwargs))

    async def _submit(self, jobs: _Jobs, step: Callable[[Tx], Coroutine[Any, Any, T]]) -> T:
        if not self._threads:
            raise DatabaseUnavailable("The SQLite database is closed.")
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        jobs.put(_Job(step, waiter, contextvars.copy_context()))
        return await waiter

    def _answerer(self, loop: asyncio.AbstractEventLoop) -> Callable[[Sequence[_Job]], None]:
        def settle(jobs: Sequence[_Job]) -> None:
            for job in jobs:
                job.settle(self)

        return lambda jobs: _call_on(loop, settle, jobs)

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        return connection


def _call_on(
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[Sequence[_Job]], None],
    jobs: Sequence[_Job],
) -> None:
    try:
        loop.call_soon_threadsafe(settle, jobs)
    except RuntimeError:
        # The loop is gone, and everyone who waited on it; what was committed stays committed.
        return


class _Worker:
    """Owns one connection and the thread that uses it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        jobs: _Jobs,
        ids: IdCounters,
        answer: Callable[[Sequence[_Job]], None],
    ) -> None:
        self._connection = connection
        self._jobs = jobs
        self._ids = ids
        self._answer = answer

    def work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._answer(self._transact(job))
        self._connection.close()

    def _transact(self, first: _Job) -> Sequence[_Job]:
        raise NotImplementedError

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class _Reader(_Worker):
    def _transact(self, first: _Job) -> Sequence[_Job]:
        try:
            self._connection.execute("BEGIN")
            first.perform(SQLiteTx(self._connection, self._ids))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            first.error = first.error or _in_our_words(error)
            self._rollback()
        return (first,)


class _Writer(_Worker):
    def _transact(self, first: _Job) -> Sequence[_Job]:
        """Commit the first step at once, and with it those that arrived while the last commit ran."""
        jobs = [first]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._apply(first)
            until = time.monotonic() + _BATCH_SECONDS
            while len(jobs) < _BATCH_STEPS and (job := self._next()) is not None:
                jobs.append(job)
                self._apply(job)
                if time.monotonic() > until:
                    break
            self._connection.execute("COMMIT")
        except (sqlite3.Error, DatabaseUnavailable) as error:
            failure = _in_our_words(error)
            for job in jobs:
                job.error = job.error or failure
            self._rollback()
        return jobs

    def _next(self) -> _Job | None:
        try:
            job = self._jobs.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            self._jobs.put(None)
        return job

    def _apply(self, job: _Job) -> None:
        if job.waiter.cancelled():
            job.error = asyncio.CancelledError()
            return
        self._connection.execute("SAVEPOINT step")
        job.perform(SQLiteTx(self._connection, self._ids))
        if not self._connection.in_transaction:
            raise DatabaseUnavailable("SQLite gave up the whole commit.") from job.error
        if job.error is not None:
            self._connection.execute("ROLLBACK TO step")
        self._connection.execute("RELEASE step")


def _in_our_words(error: Exception) -> Exception:
    return translated(error) or error
