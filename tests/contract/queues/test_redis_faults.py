"""Redis is flushed, killed, frozen or cut off: nothing is lost, and no limit is broken."""

import asyncio
import contextlib
import time
from collections.abc import Callable

import pytest

from attune.kernel.errors import InvalidSettings, QueueLost, QueueUnavailable
from attune.kernel.ids import LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.port import QueueItem, QueueStatus
from attune.pipeline.queues.redis.link import RedisLink
from attune.pipeline.queues.redis.queue import RedisQueue
from harness.proxy import FaultProxy
from harness.redis import Redis
from tests.contract.queues.worlds import RedisWorld, eventually, ids, order_of

LIMIT = 3


async def _half_done(world: RedisWorld) -> tuple[LaneId, list[QueueItem]]:
    """Ten in a lane of which three have its slots, one of them a worker too; those that wait are returned."""
    lane = await world.lane("a.b")
    items = await world.items(lane, 10)
    await world.pair.enqueue_many(items)
    await world.pair.try_schedule_many(lane, LIMIT, 10)
    await world.pair.try_schedule(None)
    urgent = items[-1].execution
    await world.pair.update_priority(urgent, Priority.HIGH)
    return lane, [items[-1], *items[LIMIT:-1]]


async def _came_back_whole(world: RedisWorld, lane: LaneId, waiting: list[QueueItem]) -> None:
    assert await world.mirror.disagreeing() == []
    assert await world.queue.get_queue_status(lane) == QueueStatus(len(waiting), LIMIT)
    assert await world.queue.get_queue_status() == QueueStatus(LIMIT - 1, 1)
    assert await world.queue.try_schedule(LIMIT, lane) is None
    assert await order_of(world.queue, lane) == ids(waiting)


async def _answers(world: RedisWorld) -> bool:
    try:
        await world.mirror.ensure()
    except QueueUnavailable:
        return False
    return True


async def test_after_a_flush_nothing_is_scheduled_before_everything_is_back(
    redis_world: RedisWorld, redis_server: Redis
) -> None:
    lane, waiting = await _half_done(redis_world)
    redis_server.flush()

    with pytest.raises(QueueLost):
        await redis_world.queue.try_schedule(LIMIT, lane)
    with pytest.raises(QueueLost):
        await redis_world.queue.enqueue(waiting[0])
    assert await redis_world.mirror.ensure()
    await _came_back_whole(redis_world, lane, waiting)


async def test_a_redis_that_was_killed_is_rebuilt(
    redis_world: RedisWorld, redis_server: Redis
) -> None:
    lane, waiting = await _half_done(redis_world)
    redis_server.kill()
    with pytest.raises(QueueUnavailable, match="is away"):
        await redis_world.queue.try_schedule(LIMIT, lane)
    redis_server.start()
    await eventually(lambda: _answers(redis_world))

    await _came_back_whole(redis_world, lane, waiting)


async def test_a_redis_that_came_back_with_old_data_is_not_believed(
    redis_world: RedisWorld, redis_server: Redis
) -> None:
    lane, waiting = await _half_done(redis_world)
    await redis_world.link.command("SAVE")
    first = waiting.pop(0)
    await redis_world.pair.remove(first.execution)
    redis_server.kill()
    redis_server.start()
    try:
        fresh = RedisQueue(redis_world.new_link())
        assert await redis_world.new_link().command("EXISTS", "exec_queue:whole") == 1
        with pytest.raises(QueueLost):
            await fresh.try_schedule(LIMIT + 1, lane)
        await eventually(lambda: _answers(redis_world))
        await _came_back_whole(redis_world, lane, waiting)
    finally:
        (redis_server.directory / "dump.rdb").unlink()


async def test_a_frozen_redis_costs_its_callers_one_bounded_wait(
    redis_world: RedisWorld, redis_server: Redis
) -> None:
    lane, waiting = await _half_done(redis_world)
    redis_server.pause()
    begun = time.monotonic()
    with pytest.raises(QueueUnavailable, match="is away"):
        await redis_world.queue.try_schedule(None, lane)
    first = time.monotonic() - begun
    with pytest.raises(QueueUnavailable, match="a moment ago"):
        await redis_world.queue.try_schedule(None, lane)
    redis_server.resume()
    await eventually(lambda: _answers(redis_world))

    assert first < 3 * redis_world.timeout
    # The call that nobody heard the end of may have been carried out; the database knows nothing of it.
    await redis_world.mirror.rebuild(await redis_world.mirror.disagreeing())
    await _came_back_whole(redis_world, lane, waiting)


async def test_a_redis_that_forgot_its_scripts_goes_on(redis_world: RedisWorld) -> None:
    lane, waiting = await _half_done(redis_world)
    await redis_world.link.command("SCRIPT FLUSH")

    await _came_back_whole(redis_world, lane, waiting)


async def test_a_connection_that_broke_is_made_again(
    redis_world: RedisWorld, proxy_to: Callable[[str], FaultProxy]
) -> None:
    lane, _ = await _half_done(redis_world)
    proxy = proxy_to(redis_world.url)
    queue = RedisQueue(redis_world.new_link(proxy.url_for(redis_world.url)))
    before = await queue.get_queue_status(lane)
    await asyncio.to_thread(proxy.cut)
    with pytest.raises(QueueUnavailable):
        await queue.get_queue_status(lane)
    await asyncio.to_thread(proxy.heal)

    async def again() -> QueueStatus | None:
        with contextlib.suppress(QueueUnavailable):
            return await queue.get_queue_status(lane)
        return None

    assert await eventually(again) == before


async def test_an_error_names_the_server_without_its_password(redis_world: RedisWorld) -> None:
    link = RedisLink("redis://attune:hidden@127.0.0.1:1/0", redis_world.clock, 0.5)
    with pytest.raises(QueueUnavailable, match="127.0.0.1:1") as caught:
        await RedisQueue(link).get_queue_status()
    await link.close()

    assert "hidden" not in str(caught.value)


def test_an_address_that_is_none_is_refused_by_its_field(redis_world: RedisWorld) -> None:
    with pytest.raises(InvalidSettings, match=r"redis\.url"):
        RedisLink("http://somewhere", redis_world.clock)
