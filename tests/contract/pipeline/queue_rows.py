"""Rows of lanes, entries, executions and decisions, as the engine would have written them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.policies.model import EffectivePolicy
from attune.pipeline.queues.decisions import Item, Joined, Left
from attune.store.database import Database, Tx
from attune.store.values import Json

_LANE = """
    INSERT INTO lane (id, action_ref, group_key, paused, next_sequence, queue_length, active_count,
                      total_enqueued, total_completed, last_enqueued_at, policy, terms, stamp, arranged,
                      max_concurrent, next_decision, created, updated)
    VALUES (:id, :ref, '', false, 1, 0, 0, 0, 0, :now, :policy, :terms, '', 0, :most, 1, :now, :now)
"""
_EXECUTION = """
    INSERT INTO execution (id, action_ref, definition, status, attempt, priority, config, created, updated,
                           started_at)
    VALUES (:id, 'core.noop', 1, 'requested', 1, :priority, :config, :now, :now, NULL)
"""
_ENTRY = """
    INSERT INTO entry (execution, lane, band, sequence, state, enqueued_at, attempt, definition)
    VALUES (:id, :lane, :priority, :id, :state, :now, 1, 1)
"""
_DECISION = """
    INSERT INTO decision (lane, number, at, active_before, active_after, queue_length, reason, items)
    SELECT :lane, next_decision, :now, 0, 0, queue_length, :reason, :items FROM lane WHERE id = :lane
"""
_COUNT = """
    UPDATE lane SET queue_length = queue_length + :queued, active_count = active_count + :active,
           total_enqueued = total_enqueued + :enqueued, total_completed = total_completed + :completed,
           next_decision = next_decision + 1, updated = :now
     WHERE id = :lane
"""
_LEAVE = "DELETE FROM entry WHERE execution = ANY(:ids::bigint[]) RETURNING state"
_END = """
    UPDATE execution SET status = :status, updated = :now,
           started_at = coalesce(:began::timestamptz, started_at)
     WHERE id = ANY(:ids::bigint[])
"""


@dataclass
class QueueRows:
    """Each call leaves one decision in the log of its lane."""

    database: Database
    now: datetime
    _ids: list[int] = field(default_factory=list)

    async def lane(
        self, lane_id: int = 1, most: int | None = None, terms: EffectivePolicy | None = None
    ) -> LaneId:
        values = {"policy": terms and terms.policy, "terms": terms, "most": most}
        ref = f"core.noop{lane_id}"
        await self._run(_LANE, id=lane_id, ref=ref, now=self.now, **values)
        return LaneId(lane_id)

    async def joined(
        self, lane: int, priority: Priority = Priority.NORMAL, state: str = "queued"
    ) -> ExecutionId:
        [new] = await self.all_joined(lane, 1, priority, state)
        return new

    async def all_joined(
        self, lane: int, count: int, priority: Priority = Priority.NORMAL, state: str = "queued"
    ) -> list[ExecutionId]:
        first = len(self._ids) + 1
        new = [ExecutionId(number) for number in range(first, first + count)]
        self._ids += new

        async def join(tx: Tx) -> None:
            for one in new:
                values = {"id": one, "priority": priority, "now": self.now}
                await tx.execute(_EXECUTION, config=Json({}), **values)
                await tx.execute(_ENTRY, lane=lane, state=state, **values)

        await self.database.run(join)
        waiting = count if state == "queued" else 0
        items: list[Item] = [Joined(one, one, priority) for one in new]
        await self._log(lane, items, queued=waiting, active=count - waiting, enqueued=count)
        return new

    async def started(self, execution: ExecutionId, lane: int = 1) -> None:
        """A worker has it and has said so."""
        was = await self._state(execution)
        await self._run("UPDATE entry SET state = 'handed' WHERE execution = :id", id=execution)
        sql = "UPDATE execution SET status = 'running', started_at = :now WHERE id = :id"
        await self._run(sql, id=execution, now=self.now)
        if was == "queued":
            await self._log(lane, [], queued=-1, active=1)

    async def taken_back(self, execution: ExecutionId) -> None:
        sql = "UPDATE entry SET state = 'ready', attempt = attempt + 1 WHERE execution = :id"
        await self._run(sql, id=execution)
        await self._run("UPDATE execution SET attempt = attempt + 1 WHERE id = :id", id=execution)

    async def ended(
        self,
        *executions: ExecutionId,
        lane: int = 1,
        status: str = "completed",
        seconds: float | None = None,
        reason: str | None = None,
    ) -> None:
        """`seconds` is how long they ran until now; null where their start was told before."""
        began = None if seconds is None else self.now - timedelta(seconds=seconds)
        ids = list(executions)

        async def end(tx: Tx) -> int:
            states = await tx.all(str, _LEAVE, ids=ids)
            await tx.execute(_END, ids=ids, status=status, now=self.now, began=began)
            return sum(state != "queued" for state in states)

        held = await self.database.run(end)
        items: list[Item] = [Left(one, one, 2, held > 0) for one in ids]
        gone = len(ids)
        await self._log(lane, items, reason, queued=held - gone, active=-held, completed=gone)

    async def ran(self, lane: int, count: int, **how: Any) -> None:
        """So many came, ran and ended."""
        await self.ended(*await self.all_joined(lane, count, state="handed"), lane=lane, **how)

    async def _state(self, execution: ExecutionId) -> str:
        async def ask(tx: Tx) -> str:
            return await tx.one(str, "SELECT state FROM entry WHERE execution = :id", id=execution)

        return await self.database.read(ask)

    async def _log(
        self, lane: int, items: list[Item], reason: str | None = None, **counts: int
    ) -> None:
        async def write(tx: Tx) -> None:
            await tx.execute(_DECISION, lane=lane, now=self.now, reason=reason, items=Json(items))
            changes = {"queued": 0, "active": 0, "enqueued": 0, "completed": 0, **counts}
            await tx.execute(_COUNT, lane=lane, now=self.now, **changes)

        await self.database.run(write)

    async def _run(self, sql: str, **values: Any) -> None:
        async def change(tx: Tx) -> None:
            await tx.execute(sql, **values)

        await self.database.run(change)
