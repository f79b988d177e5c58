"""What works behind an SQLite database: each owns one connection, and performs jobs on it."""

import asyncio
import contextvars
import queue
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from attune.kernel.errors import DatabaseUnavailable
from attune.store.database import Tx
from attune.store.sqlite_errors import translated
from attune.store.sqlite_tx import IdCounters, SQLiteTx, drive

_BATCH_STEPS: Final = 256
_BATCH_SECONDS: Final = 0.005


@dataclass(slots=True, eq=False)
class Job:
    """A step on its way, and who waits for it."""

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

    def settle(self, deliver: Callable[[Iterable[tuple[str, str]]], None]) -> None:
        """On the event loop: the effects and wakes of what was committed, then the answer."""
        if self.error is None and self.tx is not None:
            for effect in self.tx.effects:
                effect()
            deliver(self.tx.wakes)
        if self.waiter.done():
            return
        if self.error is None:
            self.waiter.set_result(self.result)
        else:
            self.waiter.set_exception(self.error)


Jobs = queue.SimpleQueue[Job | None]
Answerer = Callable[[Sequence[Job]], None]


class Worker:
    """Owns one connection. One thread uses it."""

    def __init__(self, connection: sqlite3.Connection, ids: IdCounters) -> None:
        self._connection = connection
        self._ids = ids

    def work(self, jobs: Jobs, answer: Answerer) -> None:
        """The life of a thread: until it is told that there is no more."""
        while (job := jobs.get()) is not None:
            answer(self.transact(job))
        self.close()

    def transact(self, first: Job) -> Sequence[Job]:
        """Perform the job, and those that share its transaction. They have ended then, and are to be settled."""
        raise NotImplementedError

    def close(self) -> None:
        self._connection.close()

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class Reader(Worker):
    def transact(self, first: Job) -> Sequence[Job]:
        try:
            self._connection.execute("BEGIN")
            first.perform(SQLiteTx(self._connection, self._ids))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            first.error = first.error or _in_our_words(error)
            self._rollback()
        return (first,)


class Writer(Worker):
    """`waiting` has those that it may take along."""

    def __init__(self, connection: sqlite3.Connection, ids: IdCounters, waiting: Jobs) -> None:
        super().__init__(connection, ids)
        self._waiting = waiting

    def transact(self, first: Job) -> Sequence[Job]:
        """Commit the first step at once, and with it those that arrived while the last commit ran."""
        jobs = [first]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._perform(first)
            if first.error is not None:
                self._rollback()
                return jobs
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

    def _next(self) -> Job | None:
        try:
            job = self._waiting.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            self._waiting.put(None)
        return job

    def _apply(self, job: Job) -> None:
        """Beside those before it, which stay whatever becomes of this one."""
        self._connection.execute("SAVEPOINT step")
        self._perform(job)
        if job.error is not None:
            self._connection.execute("ROLLBACK TO step")
        self._connection.execute("RELEASE step")

    def _perform(self, job: Job) -> None:
        if job.waiter.cancelled():
            job.error = asyncio.CancelledError()
            return
        job.perform(SQLiteTx(self._connection, self._ids))
        if not self._connection.in_transaction:
            raise DatabaseUnavailable("SQLite gave up the whole commit.") from job.error


def _in_our_words(error: Exception) -> Exception:
    return translated(error) or error
