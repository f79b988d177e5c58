"""Redis says who is next, and the database has the last word.

With `executor.queue.backend: redis`, executions join their lanes waiting. An executor that hears of one tells Redis,
asks it for those whose turn it is, and admits as many in a transaction that checks order and every gate again. Where
the two disagree the database is right, and Redis follows it. While Redis is away the database
admits by itself.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
import structlog

from attune.kernel.clock import Clock
from attune.kernel.duty import DutyConfig
from attune.kernel.errors import QueueUnavailable
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.flow import Flow
from attune.pipeline.processors.woken import WokenDuty
from attune.pipeline.queues.port import ExecutionQueue
from attune.pipeline.queues.redis.mirror import RedisMirror
from attune.pipeline.running import QUEUES
from attune.store.database import Tx

_WAITING: Final = """
    SELECT id, CASE WHEN paused THEN 0 ELSE max_concurrent END AS most, queue_length FROM lane
     WHERE queue_length > 0 AND pools IS NULL
       AND (:every OR action_ref = ANY(ARRAY(
            SELECT x.action_ref FROM execution x WHERE x.id = ANY(:ids::bigint[]))))
     ORDER BY id
"""
_AT_ONCE: Final = 500

_log = structlog.get_logger()


class _Waiting(msgspec.Struct, frozen=True):
    """A lane in which somebody waits; `most` is how many it lets run."""

    id: LaneId
    most: int | None
    queue_length: int


class ProposalsConfig(DutyConfig, frozen=True, kw_only=True):
    """`interval` is how long Redis may differ from the database after something was lost."""

    interval: float = 10.0


class Proposals(WokenDuty[ProposalsConfig]):
    name = "queue proposals"
    topics = (QUEUES,)

    def __init__(
        self,
        flow: Flow,
        queue: ExecutionQueue,
        mirror: RedisMirror,
        clock: Clock,
        config: ProposalsConfig | None = None,
    ) -> None:
        super().__init__(flow, clock, config or ProposalsConfig())
        self._queue = queue
        self._mirror = mirror
        self._is_away = False

    async def run_once(self) -> None:
        """Mend what differs, then ask in every lane in which somebody waits."""
        try:
            if await self._mirror.ensure():
                await self._mirror.repair()
                await self._propose(await self._waiting(()))
                self._is_back()
            else:
                await self._by_itself()
        except QueueUnavailable as error:
            await self._without(error)

    async def tell(self, ids: Sequence[ExecutionId]) -> None:
        """These have come, changed or ended: Redis is told, and asked in the lanes of their actions."""
        try:
            if await self._mirror.ensure():
                await self._mirror.follow(ids)
                await self._propose(await self._waiting(ids))
                self._is_back()
            else:
                await self._by_itself()
        except QueueUnavailable as error:
            await self._without(error)
        await self._flow.schedule()

    async def _propose(self, lanes: Sequence[_Waiting]) -> None:
        for lane in lanes:
            count = min(lane.queue_length, _AT_ONCE)
            while proposed := await self._queue.try_schedule_many(lane.id, lane.most, count):
                ids = [item.execution for item in proposed]
                admitted = await self._flow.admit(lane.id, ids)
                await self._mirror.follow({*ids, *admitted})
                if set(admitted) != set(ids):
                    break

    async def _waiting(self, ids: Collection[ExecutionId]) -> list[_Waiting]:
        return await self._flow.database.read(_waiting, sorted(ids))

    def _is_back(self) -> None:
        if self._is_away:
            _log.info("Redis is back.")
        self._is_away = False

    async def _without(self, error: QueueUnavailable) -> None:
        if not self._is_away:
            _log.warning("Redis is away; the database admits by itself.", error=str(error))
        self._is_away = True
        await self._by_itself()

    async def _by_itself(self) -> None:
        """Also while another process builds Redis anew: nobody waits for that."""
        await self._flow.promote(by_itself=True)


async def _waiting(tx: Tx, ids: Sequence[ExecutionId]) -> list[_Waiting]:
    """Lanes of the actions of these; all for none."""
    return await tx.all(_Waiting, _WAITING, ids=ids, every=not ids)
