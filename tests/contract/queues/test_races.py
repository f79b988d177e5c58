"""Several clients at once: the limit holds, and nobody is given twice."""

import asyncio

import pytest

from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.queues.port import ExecutionQueue, QueueStatus
from tests.contract.queues.worlds import World, ids

CALLS = 1_000
LIMIT = 5


class Referee:
    """Counts slots as their holders see them: from the answer that gave one to the request that frees it."""

    def __init__(self) -> None:
        self.held = 0
        self.most = 0
        self.given: list[ExecutionId] = []

    async def play(self, queue: ExecutionQueue, lane: LaneId | None, calls: int) -> None:
        """Asks for another slot while it holds one, and then lets the first go."""
        mine: list[ExecutionId] = []
        for _ in range(calls):
            item = await queue.try_schedule(LIMIT, lane)
            if item is not None:
                self.given.append(item.execution)
                mine.append(item.execution)
                self.held += 1
                self.most = max(self.most, self.held)
            if len(mine) == 2 or item is None:
                await self._let_go(queue, mine)
        while mine:
            await self._let_go(queue, mine)

    async def _let_go(self, queue: ExecutionQueue, mine: list[ExecutionId]) -> None:
        if mine:
            self.held -= 1
            assert await queue.release(mine.pop(0))


@pytest.mark.parametrize("named", [True, False])
async def test_clients_that_race_never_exceed_the_limit(world: World, named: bool) -> None:
    lane = await world.lane("a.b") if named else None
    items = await world.items(lane, 300)
    await world.queue.enqueue_many(items)
    clients = [await world.client(), await world.client()]
    referee = Referee()
    players = [client for client in clients for _ in range(5)]
    await asyncio.gather(*(referee.play(one, lane, CALLS // len(players)) for one in players))

    assert 1 < referee.most <= LIMIT
    assert len(set(referee.given)) == len(referee.given)
    assert await world.queue.get_queue_status(lane) == QueueStatus(300 - len(referee.given), 0)


async def test_a_release_that_many_report_frees_one_slot(world: World) -> None:
    lane = await world.lane("a.b")
    items = await world.items(lane, 3)
    await world.queue.enqueue_many(items)
    await world.queue.try_schedule_many(lane, 2, 2)
    clients = [await world.client() for _ in range(3)]
    freed = await asyncio.gather(*(one.release(items[0].execution) for one in clients * 4))

    assert sum(freed) == 1
    assert len(await world.queue.try_schedule_many(lane, 2, 9)) == 1


async def test_one_that_many_enqueue_stands_once(world: World) -> None:
    lane = await world.lane("a.b")
    items = await world.items(lane, 20)
    clients = [await world.client() for _ in range(3)]
    new = await asyncio.gather(*(one.enqueue_many(items) for one in clients))

    assert sum(new) == 20
    assert ids(await world.queue.try_schedule_many(lane, None, 99)) == ids(items)
