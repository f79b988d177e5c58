"""What works behind an SQLite database: each owns one connection, and performs jobs on it."""

import asyncio
import contextvars
import queue
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from attune.kernel.errors import Contention, DatabaseUnavailable
from attune.store.database import Tx
from attune.store.sqlite_errors import translated
from attune.store.sqlite_tx import IdCounters, SQLiteTx, drive

_BATCH_STEPS: Final = 256
_BATCH_SECONDS: Final = 0.005
_SMOOTHING: Final = 8  # commits, over which their time is told


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
    """Owns one connection. One thread uses it at a time."""

    def __init__(self, connection: sqlite3.Connection, ids: IdCounters) -> None:
        self._connection = connection
        self._ids = ids

    def work(self, jobs: Jobs, answer: Answerer) -> None:
        """The life of a thread: until it is told that there is no more."""
        while (job := jobs.get()) is not None:
            answer(self.transact(job, jobs))
        self.close()

    def transact(self, first: Job, waiting: Jobs) -> Sequence[Job]:
        """Perform the job, and of those that wait any that share its transaction. They have ended then, and are to be
        settled."""
        raise NotImplementedError

    def close(self) -> None:
        self._connection.close()

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class Reader(Worker):
    def transact(self, first: Job, waiting: Jobs) -> Sequence[Job]:  # noqa: ARG002
        return self.look(first)

    def look(self, first: Job) -> Sequence[Job]:
        """Alone: nothing is shared with other readers."""
        try:
            self._connection.execute("BEGIN")
            first.perform(SQLiteTx(self._connection, self._ids))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            first.error = first.error or _in_our_words(error)
            self._rollback()
        return (first,)


class Writer(Worker):
    """Its thread uses it, and the event loop while that has nothing to do.

    `commit_seconds` tells how long a commit takes lately, or how long others have held the file.
    """

    def __init__(self, connection: sqlite3.Connection, ids: IdCounters, patience: float) -> None:
        super().__init__(connection, ids)
        self.commit_seconds = 0.0
        self._patience = self._waits = patience

    def transact(self, first: Job, waiting: Jobs) -> Sequence[Job]:
        """Commit the first step at once, and with it those that arrived while the last commit ran."""
        return self._transact(first, waiting, self._patience)

    def transact_at_once(self, first: Job, waiting: Jobs) -> Sequence[Job]:
        """The same on the event loop, where nobody may be waited for: that another holds the file is a conflict."""
        return self._transact(first, waiting, 0)

    def _transact(self, first: Job, waiting: Jobs, patience: float) -> Sequence[Job]:
        jobs = [first]
        try:
            self._wait_for_others(patience)
            self._connection.execute("BEGIN IMMEDIATE")
            self._perform(first)
            if first.error is not None:
                self._rollback()
                return jobs
            until = time.monotonic() + _BATCH_SECONDS
            while len(jobs) < _BATCH_STEPS and (job := waiting_job(waiting)) is not None:
                jobs.append(job)
                self._apply(job)
                if time.monotonic() > until:
                    break
            self._commit()
        except (sqlite3.Error, DatabaseUnavailable) as error:
            failure = _in_our_words(error)
            if isinstance(failure, Contention):
                self.commit_seconds = self._patience
            for job in jobs:
                job.error = job.error or failure
            self._rollback()
        return jobs

    def _wait_for_others(self, seconds: float) -> None:
        if self._waits != seconds:
            self._connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            self._waits = seconds

    def _commit(self) -> None:
        start = time.monotonic()
        self._connection.execute("COMMIT")
        taken = time.monotonic() - start
        self.commit_seconds += (taken - self.commit_seconds) / _SMOOTHING

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


def waiting_job(waiting: Jobs) -> Job | None:
    """The next, if there is one. That there will be no more stays to be heard by who works on."""
    try:
        job = waiting.get_nowait()
    except queue.Empty:
        return None
    if job is None:
        waiting.put(None)
    return job


def _in_our_words(error: Exception) -> Exception:
    return translated(error) or error
