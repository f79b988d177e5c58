"""Attempts on a bench: what workers say of them, also late and twice, and what must be true of them at every moment."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import msgspec

from attune.kernel.ids import ExecutionId, LaneId, WorkerId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.completion.model import Completed, Ended, LostWorker, Started
from attune.pipeline.completion.steps import complete, report_running
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Outbox
from attune.pipeline.queues.measures import QueueCounts, queue_counts
from attune.store.database import Tx
from tests.contract.pipeline.bench import FILLED, Bench
from tests.contract.pipeline.proofs import prove
from tests.contract.pipeline.whys import why

S = ExecutionStatus
LIVE: Final = frozenset(S) - TERMINAL
WITH_A_WORKER: Final = frozenset({S.SCHEDULED, S.RUNNING, S.CANCELING})

_HANDED: Final = """
    SELECT execution, attempt, lane, worker FROM entry WHERE state = 'handed' ORDER BY execution
"""
_STANDING: Final = """
    SELECT x.id, x.status, x.attempt, x.result, x.updated, x.worker, e.state, e.attempt AS entry_attempt,
           e.worker AS entry_worker, d.attempt AS delay_attempt,
           (SELECT count(*) FROM execution_attempt a WHERE a.execution = x.id) AS recorded,
           (SELECT count(*) FROM execution_attempt a WHERE a.execution = x.id AND a.attempt >= x.attempt)
               AS unfounded
      FROM execution x LEFT JOIN entry e ON e.execution = x.id LEFT JOIN delay d ON d.execution = x.id
     ORDER BY x.id
"""


class Attempt(msgspec.Struct, frozen=True):
    """What a worker was told at the hand-off, and goes by for as long as it has it."""

    execution: ExecutionId
    attempt: int
    lane: LaneId
    worker: WorkerId


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    id: ExecutionId
    status: ExecutionStatus
    attempt: int
    result: Any
    updated: datetime
    worker: WorkerId | None
    state: str | None
    entry_attempt: int | None
    entry_worker: WorkerId | None
    delay_attempt: int | None
    recorded: int
    unfounded: int


class AttemptBench(Bench):
    """What finds no worker waits for one. `attempts` are all that were ever handed to one, `given_back` counts those
    that it gave back."""

    def new_flow(self, source: str, *, through: bool, **terms: Any) -> Flow:
        grace = {"no_worker_grace": timedelta(days=9999)}
        return super().new_flow(source, through=through, **{**grace, **terms})

    async def empty(self) -> None:
        """As it was at the beginning."""
        for name in FILLED:
            await self.execute(f"DELETE FROM {name}")
        await self._define()
        self.attempts: dict[tuple[ExecutionId, int], Attempt] = {}
        self.given_back: dict[ExecutionId, int] = {}
        self._ended: dict[ExecutionId, Standing] = {}
        self._counts = QueueCounts(depth=0, active=0, enqueued=0, scheduled=0)

    async def begin(self, one: Attempt) -> int:
        """Its worker says that it runs; how many believed it."""
        now = self.clock.now()

        async def tell(tx: Tx) -> int:
            started = [Started(one.execution, one.attempt, now)]
            return (await report_running(tx, Outbox(tx, self.flow.mail), started)).moved

        return await self.database.run(tell)

    async def say(
        self, one: Attempt, status: ExecutionStatus, *, began: bool, flow: Flow | None = None
    ) -> Completed:
        """Its worker says how it ended, and goes by what it was told at the hand-off."""
        executor, now = flow or self.flow, self.clock.now()
        ok = status is S.COMPLETED
        word = Ended(
            execution=one.execution,
            attempt=one.attempt,
            lane=one.lane,
            status=status,
            result=b"{}" if ok else b'{"error":"no luck","exit_code":3}',
            started_at=now if began else None,
        )

        async def end(tx: Tx) -> Completed:
            outbox = Outbox(tx, executor.mail)
            return await complete(tx, executor.scheduler, outbox, one.worker, [word], now)

        return await self.database.run(end)

    async def lose(self, worker: WorkerId, flow: Flow | None = None) -> int:
        lost = LostWorker(worker, f"worker {worker}", cordoned=False)
        return await (flow or self.flow).take_back(lost, "was lost")

    async def workers(self) -> list[WorkerId]:
        return await self.values(WorkerId, "SELECT id FROM worker ORDER BY id")

    async def standing(self) -> dict[ExecutionId, Standing]:
        return {one.id: one for one in await self.values(Standing, _STANDING)}

    async def handed(self) -> list[Attempt]:
        return await self.values(Attempt, _HANDED)

    async def check(self) -> None:
        """Fails with the first thing that is not so."""
        await prove(self)
        for attempt in await self.handed():
            self.attempts.setdefault((attempt.execution, attempt.attempt), attempt)
        for one in (await self.standing()).values():
            self._check_one(one)
            if one.status in LIVE and one.status not in WITH_A_WORKER:
                await self._check_reason(one)
        counts = await self.database.read(queue_counts)
        assert counts.scheduled >= self._counts.scheduled, (counts, self._counts)
        assert counts.enqueued >= self._counts.enqueued
        self._counts = counts

    def _check_one(self, one: Standing) -> None:
        assert one.recorded == one.attempt - 1 - self.given_back.get(one.id, 0), one
        assert one.unfounded == 0, one
        if one.status in TERMINAL:
            assert (one.state, one.delay_attempt) == (None, None), one
            assert self._ended.setdefault(one.id, one) == one, "ended twice"
            return
        assert one.id not in self._ended, one
        assert (one.state == "handed") == (one.status in WITH_A_WORKER), one
        assert one.attempt in (one.entry_attempt, one.delay_attempt), one
        assert one.worker == one.entry_worker, one

    async def _check_reason(self, one: Standing) -> None:
        found = await why(self, one.id)
        assert found.waiting, one
        assert found.first_blocker is not None, one
        assert all(gate.is_closed and gate.text for gate in found.blockers), found
        assert found.next, one
        assert found.history, one
        assert found.history[-1].until is None, found.history
        assert (found.first_blocker == "delay") == (one.delay_attempt is not None), found
        told = [(each.since, each.until) for each in found.history]
        for (_, until), (since, _) in pairwise(told):
            assert until is not None, found.history
            assert until <= since, found.history
        resting = found.history[-1].reason == "delay"
        assert resting == (one.delay_attempt is not None), found.history
