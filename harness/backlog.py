"""One lane with a limit and as many as wanted waiting in it; each end of one admits the next.

Executions are written as rows, in the shape that a request gives them, because asking for a million takes an hour. The
worker is a row, too: nothing runs, so what is left is the cost of the engine's own transaction.
"""

from collections import deque
from datetime import timedelta
from typing import Final

import msgspec

from attune.catalog.steps.policies import NewPolicy, create_policy
from attune.kernel.envelope import Stamp
from attune.kernel.ids import ExecutionId, LaneId, WorkerId
from attune.kernel.messages import MessageType, Payload
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Completed, Ended
from attune.pipeline.completion.steps import complete
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.flow import Flow
from attune.pipeline.outbox import Mail, Outbox
from attune.pipeline.queues.model import QueueTerms
from attune.pipeline.scheduling.model import Terms
from attune.pipeline.workers.model import Registration, RuntimeSupport
from attune.pipeline.workers.steps import register
from attune.store import schema
from attune.store.database import Tx
from harness.control_plane import ControlPlane

ACTION: Final = "core.noop"
LIMIT: Final = 10
_AT_ONCE: Final = 5_000
_TERMS: Final = Terms(
    stale=timedelta(days=1),
    queue=QueueTerms(max_queue_length=10_000_000, timeout_seconds=86_400),
)

_EXECUTIONS: Final = """
    INSERT INTO execution (id, action, action_ref, definition, status, attempt, priority, executor,
                           config, created, updated)
    SELECT v.id, x.action, x.action_ref, x.definition, 'requested', 1, x.priority, x.executor,
           x.config, :now, :now
      FROM ROWS(:new AS v(id bigint, sequence bigint)) CROSS JOIN execution x WHERE x.id = :like
"""
_ENTRIES: Final = """
    INSERT INTO entry (execution, lane, band, sequence, state, reason, enqueued_at, attempt, definition)
    SELECT v.id, :lane, x.priority, v.sequence, 'queued', 'concurrency', :now, 1, x.definition
      FROM ROWS(:new AS v(id bigint, sequence bigint)) CROSS JOIN execution x WHERE x.id = :like
"""
_COUNT: Final = """
    UPDATE lane SET next_sequence = next_sequence + :count, queue_length = queue_length + :count,
           total_enqueued = total_enqueued + :count, last_enqueued_at = :now, reason = 'concurrency'
     WHERE id = :lane
"""
_LANE: Final = "SELECT id, next_sequence FROM lane WHERE action_ref = 'core.noop'"


class _Lane(msgspec.Struct, frozen=True):
    id: LaneId
    next_sequence: int


class _NoMail(Mail):
    """Nobody listens, and what nobody reads would pile up."""

    def send(self, kind: MessageType, items: list[Payload], to: str | None = None) -> None:
        """Nothing."""

    def mention(self, kind: MessageType, items: list[Payload]) -> None:
        """Nothing."""


class Backlog:
    """`held` are those that the worker has, the oldest first."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        mail = _NoMail(plane.announcer, Stamp("backlog", plane.clock, plane.ids))
        self.flow = Flow(plane.database, plane.clock, mail, _TERMS, through=True)
        self.lane = LaneId(0)
        self.held: deque[ExecutionId] = deque()
        self._worker = WorkerId(0)

    async def open(self) -> None:
        """The policy, the worker, and as many executions as it may have at once."""
        plane, now = self.plane, self.plane.clock.now()
        policy = NewPolicy(
            ref=f"{ACTION}_limit", scope_type="action", scope_ref=ACTION, concurrency_limit=LIMIT
        )
        await plane.database.run(create_policy, policy, now)
        coming = Registration(
            name="none",
            capacity=LIMIT,
            supported_runtimes=[RuntimeSupport("native")],
            incarnation="1",
        )
        self._worker = (await plane.database.run(register, coming, now)).id
        made = await self.flow.request(Order((Request(action_ref=ACTION),) * LIMIT))
        self.held.extend(one.id for one in made)
        self.lane = (await plane.database.read(_lane)).id

    async def grow(self, count: int) -> None:
        """So many more wait at the end of the lane."""
        while count > 0:
            await self.plane.database.run(self._grow, min(count, _AT_ONCE))
            count -= _AT_ONCE

    async def settle(self) -> None:
        """Tell the planner how long it has become, as the server does by itself after a while."""
        await self.plane.execute("ANALYZE")

    async def admit(self) -> Completed:
        """End the oldest that runs: the next in line gets its slot and goes to the worker, in one commit."""
        return await self.plane.database.run(self.admission, self.held.popleft())

    async def admission(self, tx: Tx, ended: ExecutionId) -> Completed:
        now = self.plane.clock.now()
        end = Ended(
            execution=ended,
            attempt=1,
            lane=self.lane,
            status=ExecutionStatus.COMPLETED,
            result=b'{"succeeded": true}',
            started_at=now,
        )
        outbox = Outbox(tx, self.flow.mail)
        done = await complete(tx, self.flow.scheduler, outbox, self._worker, [end], now)
        tx.on_commit(lambda: self.held.extend(one.execution for one in done.handed))
        return done

    async def _grow(self, tx: Tx, count: int) -> None:
        now, lane = self.plane.clock.now(), await _lane(tx)
        new = list(enumerate(await tx.next_ids(schema.execution, count), lane.next_sequence))
        rows = [(id_, sequence) for sequence, id_ in new]
        await tx.execute(_EXECUTIONS, new=rows, like=self.held[0], now=now)
        await tx.execute(_ENTRIES, new=rows, like=self.held[0], lane=lane.id, now=now)
        await tx.execute(_COUNT, count=count, lane=lane.id, now=now)


async def _lane(tx: Tx) -> _Lane:
    return await tx.one(_Lane, _LANE)
