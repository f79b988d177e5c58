"""A worker that keeps failing an action, while others do not, is set aside for that action for a while.

A row of `worker_setback` counts failures in a row; a success takes it away. What fails everywhere is the action's
own fault and sets nobody aside. When the time is over the worker gets another chance, with the count kept: one more
failure sets it aside again.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec
import structlog

from attune.kernel.ids import ExecutionId, WorkerId
from attune.pipeline.scheduling.model import Terms
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.store.database import Tx

_LONGEST_ERROR: Final = 500
# A row that another process made is known after this time.
_FRESH: Final = timedelta(seconds=10)
# Ids around a failure among which a success of another worker is looked for: enough to find one where any are,
# and bounded however many wait behind.
_AROUND: Final = 1000
_KNOWN: Final = "SELECT action_ref FROM worker_setback WHERE worker = :worker"
_CLEAR: Final = """
    DELETE FROM worker_setback WHERE worker = :worker AND action_ref = ANY(:refs::text[])
    RETURNING action_ref, failures, first_execution, until
"""
_COUNT: Final = """
    INSERT INTO worker_setback (worker, action_ref, failures, since, first_execution, error)
    SELECT :worker::bigint, v.action_ref, v.failures, :now::timestamptz, v.first_execution, v.error
      FROM ROWS(:streaks AS v(action_ref text, failures int, first_execution bigint, error text))
     WHERE true
    ON CONFLICT (worker, action_ref) DO UPDATE
       SET failures = worker_setback.failures + excluded.failures, error = excluded.error
    RETURNING action_ref, failures, first_execution, until
"""
_OTHERS_SUCCEED: Final = """
    SELECT EXISTS (
        SELECT 1 FROM (
            SELECT x.status, x.worker FROM execution x
             WHERE x.action_ref = :action_ref AND x.id BETWEEN :first AND :last
             ORDER BY x.id DESC LIMIT :most) y
         WHERE y.status = 'completed' AND y.worker <> :worker)
"""
_SET_ASIDE: Final = """
    UPDATE worker_setback SET until = :until WHERE worker = :worker AND action_ref = :action_ref
"""

_log = structlog.get_logger()


class AttemptEnd(msgspec.Struct, frozen=True):
    """Of an attempt, also of one that is followed by another. `error` is what its result says."""

    execution: ExecutionId
    action_ref: str
    ok: bool
    error: str | None = None


class _Row(msgspec.Struct, frozen=True):
    action_ref: str
    failures: int
    first_execution: ExecutionId
    until: datetime | None


class _Streak(msgspec.Struct, frozen=True):
    """Failures at the end of what is told of an action, and whether there was a success before them."""

    failed: tuple[AttemptEnd, ...] = ()
    succeeded: bool = False


class _Memory(msgspec.Struct, frozen=True):
    refs: frozenset[str]
    at: datetime


class Setbacks:
    """One for a process. It remembers for which actions a worker has a row, so that what goes well asks nothing of
    the database; rows are the truth, and are looked at again every ten seconds."""

    def __init__(self) -> None:
        self._memories: dict[WorkerId, _Memory] = {}

    async def note_ends(
        self, tx: Tx, worker: WorkerId, ends: Sequence[AttemptEnd], terms: Terms, now: datetime
    ) -> None:
        """Of attempts that succeeded or failed, in their order; those that somebody stopped say nothing of a worker."""
        memory = await self._memory(tx, worker, now)
        if not memory.refs and all(one.ok for one in ends):
            return
        streaks = _streaks(ends)
        cleared = [ref for ref, one in streaks.items() if one.succeeded and ref in memory.refs]
        failed = {ref: one.failed for ref, one in sorted(streaks.items()) if one.failed}
        if cleared:
            await _clear(tx, worker, sorted(cleared), now)
        if failed:
            await _count(tx, worker, failed, terms, now)
        if cleared or failed:
            left = memory.refs.difference(cleared).union(failed)
            tx.on_commit(partial(self._remember, worker, _Memory(left, memory.at)))

    async def _memory(self, tx: Tx, worker: WorkerId, now: datetime) -> _Memory:
        memory = self._memories.get(worker)
        if memory is None or now - memory.at >= _FRESH:
            memory = _Memory(frozenset(await tx.all(str, _KNOWN, worker=worker)), now)
            tx.on_commit(partial(self._remember, worker, memory))
        return memory

    def _remember(self, worker: WorkerId, memory: _Memory) -> None:
        self._memories[worker] = memory


def _streaks(ends: Sequence[AttemptEnd]) -> dict[str, _Streak]:
    found: dict[str, _Streak] = {}
    for one in ends:
        before = found.get(one.action_ref, _Streak())
        after = _Streak((*before.failed, one), before.succeeded)
        found[one.action_ref] = _Streak(succeeded=True) if one.ok else after
    return found


async def _clear(tx: Tx, worker: WorkerId, refs: Sequence[str], now: datetime) -> None:
    cleared = await tx.all(_Row, _CLEAR, worker=worker, refs=list(refs))
    taken_up = [
        Happened(
            worker=worker,
            event=WorkerEvent.TAKEN_UP,
            at=now,
            text=f"{row.action_ref} succeeded again after {row.failures} failures",
        )
        for row in cleared
        if row.until is not None
    ]
    await note(tx, taken_up)


async def _count(
    tx: Tx,
    worker: WorkerId,
    failed: Mapping[str, Collection[AttemptEnd]],
    terms: Terms,
    now: datetime,
) -> None:
    streaks = [
        (ref, len(ends), min(one.execution for one in ends), _error_of(ends))
        for ref, ends in failed.items()
    ]
    for row in await tx.all(_Row, _COUNT, worker=worker, streaks=streaks, now=now):
        if row.failures < terms.failure_threshold or (row.until and row.until > now):
            continue
        last = max(failed[row.action_ref], key=lambda one: one.execution)
        if row.until or await _others_succeed(tx, worker, row, last.execution):
            await _set_aside(tx, worker, row, last, now, now + terms.set_aside)


def _error_of(ends: Collection[AttemptEnd]) -> str | None:
    errors = [one.error for one in ends if one.error]
    return errors[-1][:_LONGEST_ERROR] if errors else None


async def _others_succeed(tx: Tx, worker: WorkerId, row: _Row, last: ExecutionId) -> bool:
    """Since the streak began; also with the execution that it began with, tried again elsewhere."""
    return await tx.one(
        bool,
        _OTHERS_SUCCEED,
        worker=worker,
        action_ref=row.action_ref,
        first=row.first_execution,
        last=last + _AROUND,
        most=2 * _AROUND,
    )


async def _set_aside(
    tx: Tx, worker: WorkerId, row: _Row, last: AttemptEnd, now: datetime, until: datetime
) -> None:
    await tx.execute(_SET_ASIDE, worker=worker, action_ref=row.action_ref, until=until)
    words = f"{row.action_ref} failed {row.failures} times in a row; set aside for it until {until.isoformat()}"
    happened = Happened(
        worker=worker,
        event=WorkerEvent.SET_ASIDE,
        at=now,
        execution=last.execution,
        text=f"{words}: {last.error[:_LONGEST_ERROR]}" if last.error else words,
    )
    await note(tx, [happened])
    told = partial(
        _log.warning,
        "A worker is set aside for an action.",
        worker_id=worker,
        action_ref=row.action_ref,
        failures=row.failures,
        until=until.isoformat(),
    )
    tx.on_commit(told)
