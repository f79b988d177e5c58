"""What the rows tell of a load when it is over."""

import asyncio
import random
from datetime import datetime
from typing import Any, Final, Self, TypeVar

import msgspec

from attune.kernel.clock import SystemClock
from attune.pipeline.queues.decisions import Decision
from attune.pipeline.queues.verify import Proof, Replay
from attune.store.database import Tx
from attune.store.postgresql import PostgreSQLDatabase

_RUNS: Final = """
    SELECT id, idempotency_key AS key, action_ref, status, attempt, created, updated AS ended_at
      FROM execution WHERE idempotency_key LIKE 'load-%' ORDER BY id
"""
_DECISIONS: Final = """
    SELECT lane, number, at, active_before, active_after, queue_length, max_concurrent, reason, items
      FROM decision ORDER BY lane, number
"""
_REST: Final = """
    SELECT (SELECT count(*) FROM entry) AS entries,
           (SELECT count(*) FROM delay) AS delays,
           (SELECT coalesce(sum(active_count), 0)::bigint FROM lane) AS active,
           (SELECT coalesce(sum(queue_length), 0)::bigint FROM lane) AS waiting,
           (SELECT coalesce(sum(active_count), 0)::bigint FROM pool) AS pooled
"""
_PAST: Final = "SELECT execution, attempt, cause FROM execution_attempt"

T = TypeVar("T")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    key: str
    action_ref: str
    status: str
    attempt: int
    created: datetime
    ended_at: datetime


class PastAttempt(msgspec.Struct, frozen=True):
    """One that was followed by another."""

    execution: int
    attempt: int
    cause: str


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """What is held or waits; nothing, when all is over."""

    entries: int
    delays: int
    active: int
    waiting: int
    pooled: int


NOTHING: Final = Rest(entries=0, delays=0, active=0, waiting=0, pooled=0)


class Ledger:
    """Reads the rows beside the processes that write them, over one connection."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._database = PostgreSQLDatabase(url, SystemClock(), random.Random(1), max_connections=1)

    def __enter__(self) -> Self:
        self._runner.run(self._database.open())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._database.close())
        self._runner.close()

    def all(self, kind: type[T], sql: str, **values: Any) -> list[T]:
        async def look(tx: Tx) -> list[T]:
            return await tx.all(kind, sql, **values)

        return self._runner.run(self._database.read(look))

    def rest(self) -> Rest:
        return self.all(Rest, _REST)[0]

    def runs(self) -> list[Run]:
        return self.all(Run, _RUNS)

    def past_attempts(self) -> list[PastAttempt]:
        return self.all(PastAttempt, _PAST)

    def proof(self) -> Proof:
        replay = Replay()
        for decision in self.all(Decision, _DECISIONS):
            replay.feed(decision)
        return replay.proof()
