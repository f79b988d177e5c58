"""SQLite: one writer thread that shares a commit between the steps that wait, and readers beside it.

A step's coroutine is driven to its end inside the writer's thread: its awaits never suspend, so a whole
transaction costs one hop between threads. Each step has its savepoint in the shared commit; one that
fails is undone alone. Nobody is answered before the commit that holds his step is on the disk.

A glance is driven on the event loop: a row by its key takes 30 us, a hop to a thread and back three to ten times that.
So is a jot, with its commit, while the writer's thread has nothing to do and the disk is quick; else it goes the usual way.
"""

import asyncio
import contextvars
import queue
import random
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from attune.kernel.clock import Clock
from attune.kernel.errors import DatabaseUnavailable
from attune.store.database import Database, Step, Tx
from attune.store.ownership import Ownership
from attune.store.sqlite_errors import translated
from attune.store.sqlite_threads import Answerer, Job, Jobs, Reader, Worker, Writer, waiting_job
from attune.store.sqlite_tx import IdCounters

T = TypeVar("T")
P = ParamSpec("P")

_READERS: Final = 2
_QUICK_COMMIT: Final = 0.002  # seconds for which everybody on the event loop may be kept waiting

_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -32768",
)


class SQLiteDatabase(Database):
    def __init__(
        self, path: Path, clock: Clock, source: random.Random, busy_timeout: float = 0.5
    ) -> None:
        super().__init__(clock, source)
        self._path = path
        self._busy_timeout = busy_timeout
        self._ownership = Ownership(path)
        self._writes: Jobs = queue.SimpleQueue()
        self._reads: Jobs = queue.SimpleQueue()
        self._jots: Jobs = queue.SimpleQueue()
        self._writer: Writer | None = None
        self._in_thread = 0  # writes that the writer's thread has and we have not heard of
        self._threads: list[threading.Thread] = []
        self._glances: Reader | None = None

    async def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._ownership.take()
        loop = asyncio.get_running_loop()
        ids = IdCounters()
        try:
            writer = self._writer = Writer(self._connect(), ids, self._busy_timeout)
            readers = [Reader(self._connect(read_only=True), ids) for _ in range(_READERS)]
            self._glances = Reader(self._connect(read_only=True, waits=False), ids)
        except sqlite3.Error as error:
            self._ownership.release()
            raise translated(error) or error from error
        served: list[tuple[Worker, Jobs, Answerer]] = [(writer, self._writes, self._written)]
        served += [(reader, self._reads, self._settle) for reader in readers]
        self._threads = [
            threading.Thread(
                target=worker.work,
                args=(jobs, partial(_call_on, loop, answer)),
                name=f"attune-sqlite-{i}",
                daemon=True,
            )
            for i, (worker, jobs, answer) in enumerate(served)
        ]
        for thread in self._threads:
            thread.start()

    async def close(self) -> None:
        threads, self._threads = self._threads, []
        glances, self._glances = self._glances, None
        if glances is None:
            return
        glances.close()
        self._leave_to_thread()
        self._writes.put(None)
        for _ in range(_READERS):
            self._reads.put(None)
        for thread in threads:
            await asyncio.to_thread(thread.join)
        self._ownership.release()

    async def _run(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        job = self._accepted(step, *args, **kwargs)
        self._write(job)
        result: T = await job.waiter
        return result

    async def _jot(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        job = self._accepted(step, *args, **kwargs)
        if self._jots.empty():
            asyncio.get_running_loop().call_soon(self._jot_down)
        self._jots.put(job)
        result: T = await job.waiter
        return result

    async def _read(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        job = self._accepted(step, *args, **kwargs)
        self._reads.put(job)
        result: T = await job.waiter
        return result

    async def _glance(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._glances is None:
            raise _closed()
        job = _job(lambda tx: step(tx, *args, **kwargs))
        self._settle(self._glances.look(job))
        result: T = await job.waiter
        return result

    def _accepted(self, step: Step[P, T], *args: P.args, **kwargs: P.kwargs) -> Job:
        if not self._threads:
            raise _closed()
        return _job(lambda tx: step(tx, *args, **kwargs))

    def _write(self, job: Job) -> None:
        self._in_thread += 1
        self._writes.put(job)

    def _written(self, jobs: Sequence[Job]) -> None:
        self._in_thread -= len(jobs)
        self._settle(jobs)

    def _jot_down(self) -> None:
        """All that came in this turn of the event loop, in one commit. What takes too long for that has a turn of its own."""
        writer = self._writer
        if writer is None or self._in_thread or writer.commit_seconds > _QUICK_COMMIT:
            self._leave_to_thread()
        elif (first := waiting_job(self._jots)) is not None:
            jobs = writer.transact_at_once(first, self._jots)
            if not self._jots.empty():
                asyncio.get_running_loop().call_soon(self._jot_down)
            self._settle(jobs)

    def _leave_to_thread(self) -> None:
        while (job := waiting_job(self._jots)) is not None:
            self._write(job)

    def _settle(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.settle(self._deliver)

    def _connect(self, *, read_only: bool = False, waits: bool = True) -> sqlite3.Connection:
        """One that does not wait for others finds a conflict at once: whoever waits on the event loop holds up all."""
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
        if not waits:
            connection.execute("PRAGMA busy_timeout = 0")
        return connection


def _job(step: Callable[[Tx], Coroutine[Any, Any, Any]]) -> Job:
    return Job(step, asyncio.get_running_loop().create_future(), contextvars.copy_context())


def _closed() -> DatabaseUnavailable:
    return DatabaseUnavailable("The SQLite database is closed.")


def _call_on(loop: asyncio.AbstractEventLoop, settle: Answerer, jobs: Sequence[Job]) -> None:
    try:
        loop.call_soon_threadsafe(settle, jobs)
    except RuntimeError:
        # The loop is gone, and everyone who waited on it; what was committed stays committed.
        return
