"""Where Redis and the database disagree, the database is right."""

import asyncio
import contextlib

import msgspec
import pytest

from attune.kernel.errors import QueueLost
from attune.kernel.ids import ExecutionId, LaneId
from attune.kernel.messages import ExecutionRequested
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.port import QueueStatus, requested_payload
from attune.pipeline.queues.redis.mirror_scripts import BEGIN, LOAD, REBUILDING, VOUCH
from tests.contract.queues.worlds import RedisWorld, ids, order_of

SECONDS_OF_A_DAY = 86_400


async def test_keys_are_those_of_the_contract(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    first = await redis_world.item(lane)
    second = await redis_world.item(lane, Priority.LOW)
    await redis_world.pair.enqueue_many([first, second])
    await redis_world.pair.try_schedule(1, lane)
    ask = redis_world.link.command
    pending = dict(await ask("ZRANGE", f"exec_queue:pending:{lane}", 0, -1, "WITHSCORES"))
    everywhere = dict(await ask("ZRANGE", "exec_queue:pending", 0, -1, "WITHSCORES"))

    assert pending == {str(second.execution).encode(): 3 * 10**12 + second.sequence}
    assert [score // 10**12 for score in everywhere.values()] == [2]
    assert await ask("SMEMBERS", f"exec_queue:active:{lane}") == {str(first.execution).encode()}
    event = f"exec_queue:event:{first.execution}"
    said = msgspec.json.decode(await ask("GET", event), type=ExecutionRequested)
    assert said.execution_id == first.execution
    assert 0 < await ask("TTL", event) <= SECONDS_OF_A_DAY


async def test_nothing_is_left_of_those_that_ended(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    items = await redis_world.items(lane, 5)
    await redis_world.pair.enqueue_many(items)
    await redis_world.pair.try_schedule_many(lane, None, 3)
    await redis_world.pair.release_many(ids(items[:3]))
    for item in items[3:]:
        await redis_world.pair.remove(item.execution)

    assert set(await redis_world.link.command("KEYS", "exec_queue:*")) == {
        b"exec_queue:whole",
        b"exec_queue:changes",
    }


async def test_an_event_that_expired_costs_nothing_but_its_words(redis_world: RedisWorld) -> None:
    item = await redis_world.item()
    await redis_world.queue.enqueue(item)
    await redis_world.link.command("DEL", f"exec_queue:event:{item.execution}")
    found = await redis_world.queue.try_schedule(None)

    expected = requested_payload(item.execution)
    assert found == msgspec.structs.replace(item, payload=expected)


async def test_one_that_redis_never_heard_of_is_found(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    known, unknown = await redis_world.items(lane, 2)
    await redis_world.pair.enqueue(known)
    await redis_world.truth.enqueue(unknown)

    assert await redis_world.mirror.differs(lane)
    assert not await redis_world.mirror.differs(None)
    assert await redis_world.mirror.repair() == [lane]
    assert await order_of(redis_world.queue, lane) == ids([known, unknown])


async def test_a_slot_given_to_somebody_who_never_heard_of_it_comes_back(
    redis_world: RedisWorld,
) -> None:
    lane = await redis_world.lane("a.b")
    items = await redis_world.items(lane, 2)
    await redis_world.pair.enqueue_many(items)
    await redis_world.queue.try_schedule(1, lane)

    assert await redis_world.mirror.disagreeing() == [lane, None]
    assert await redis_world.mirror.repair() == [lane, None]
    assert await redis_world.queue.try_schedule(1, lane) == items[0]


async def test_a_slot_whose_end_redis_never_heard_of_is_freed(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    items = await redis_world.items(lane, 2)
    await redis_world.pair.enqueue_many(items)
    await redis_world.pair.try_schedule(1, lane)
    await redis_world.pair.try_schedule(1)
    await redis_world.truth.release(items[0].execution)
    assert await redis_world.queue.try_schedule(1, lane) is None
    await redis_world.mirror.repair()

    assert await redis_world.queue.try_schedule(1, lane) == items[1]
    assert await redis_world.link.command("HLEN", "exec_queue:places") == 1
    gone = f"exec_queue:event:{items[0].execution}"
    assert await redis_world.link.command("EXISTS", gone) == 0


async def test_whoever_is_followed_stands_where_the_database_has_it(
    redis_world: RedisWorld,
) -> None:
    lane = await redis_world.lane("a.b")
    handed, back, cancelled, urgent, new = items = await redis_world.items(lane, 5)
    await redis_world.pair.enqueue_many(items[:4])
    await redis_world.pair.try_schedule_many(lane, None, 2)
    await redis_world.truth.try_schedule(None)
    await redis_world.truth.put_back(back.execution)
    await redis_world.truth.remove(cancelled.execution)
    await redis_world.truth.update_priority(urgent.execution, Priority.HIGH)
    await redis_world.truth.enqueue(new)
    await redis_world.mirror.follow(ids(items))

    assert await redis_world.mirror.disagreeing() == []
    assert await redis_world.queue.get_queue_status() == QueueStatus(0, 1)
    assert await redis_world.queue.release(handed.execution)
    assert not await redis_world.queue.remove(cancelled.execution)
    assert await order_of(redis_world.queue, lane) == ids([urgent, back, new])


async def test_another_order_is_a_difference(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    first, second = items = await redis_world.items(lane, 2)
    await redis_world.pair.enqueue_many(items)
    await redis_world.truth.update_priority(second.execution, Priority.HIGH)

    assert await redis_world.mirror.repair() == [lane]
    assert await order_of(redis_world.queue, lane) == ids([second, first])


async def test_a_lane_that_lost_the_places_of_its_members_is_rebuilt(
    redis_world: RedisWorld,
) -> None:
    lane = await redis_world.lane("a.b")
    items = await redis_world.items(lane, 3)
    await redis_world.pair.enqueue_many(items)
    await redis_world.link.command("DEL", "exec_queue:places")

    assert await redis_world.queue.try_schedule(None, lane) is None
    await redis_world.mirror.repair()
    assert await order_of(redis_world.queue, lane) == ids(items)


async def test_keys_of_a_lane_that_is_gone_are_dropped(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    await redis_world.pair.enqueue_many(await redis_world.items(lane, 3))
    await redis_world.execute("DELETE FROM entry")
    await redis_world.execute("DELETE FROM lane")

    assert await redis_world.mirror.repair() == [lane]
    assert await redis_world.link.command("KEYS", f"exec_queue:*:{lane}") == []
    assert await redis_world.link.command("EXISTS", "exec_queue:places") == 0


async def test_a_change_on_its_way_is_no_reason_to_rebuild(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    item = await redis_world.item(lane)
    await redis_world.truth.enqueue(item)
    repair = asyncio.create_task(redis_world.mirror.repair())
    while await redis_world.mirror.disagreeing():
        await redis_world.queue.enqueue(item)

    assert await repair == []


async def test_a_queue_is_replaced_at_once(redis_world: RedisWorld) -> None:
    """Whoever looks while it is rebuilt sees the old one or the new one."""
    lane = await redis_world.lane("a.b")
    items = await redis_world.items(lane, 1_200)
    await redis_world.pair.enqueue_many(items)
    other = await redis_world.client()
    seen: set[QueueStatus] = set()

    async def look() -> None:
        while True:
            seen.add(await other.get_queue_status(lane))

    looking = asyncio.create_task(look())
    for _ in range(3):
        await redis_world.mirror.rebuild([lane])
    looking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await looking

    assert seen == {QueueStatus(1_200, 0)}
    assert await order_of(redis_world.queue, lane) == ids(items)


async def test_what_changes_while_a_lane_is_rebuilt_is_not_lost(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    items = await redis_world.items(lane, 60)
    await redis_world.pair.enqueue_many(items[:30])

    async def come_and_go() -> None:
        for item in items[30:]:
            await redis_world.truth.enqueue(item)
            given = await redis_world.truth.try_schedule_many(lane, 4, 1)
            await redis_world.mirror.follow(ids([item, *given]))
        for item in items[:3]:
            await redis_world.truth.release(item.execution)
            await redis_world.mirror.follow([item.execution])

    changing = asyncio.create_task(come_and_go())
    while not changing.done():
        await redis_world.mirror.rebuild(await redis_world.mirror.disagreeing())
        await asyncio.sleep(0)
    await changing
    await redis_world.mirror.repair()

    assert await redis_world.mirror.disagreeing() == []
    assert await redis_world.queue.get_queue_status(lane) == QueueStatus(56, 1)


async def test_what_is_committed_while_everything_is_rebuilt_is_there_afterwards(
    redis_world: RedisWorld,
) -> None:
    lanes = [await redis_world.lane(f"a.{i}") for i in range(3)]
    items = [item for lane in lanes for item in await redis_world.items(lane, 200)]
    await redis_world.pair.enqueue_many(items[:400])
    await redis_world.link.command("FLUSHALL")

    async def come() -> None:
        for item in items[400:]:
            await redis_world.truth.enqueue_many([item])
            with contextlib.suppress(QueueLost):
                await redis_world.queue.enqueue(item)

    coming = asyncio.create_task(come())
    assert await redis_world.mirror.ensure()
    await coming

    assert await redis_world.mirror.disagreeing() == []


async def test_two_processes_rebuild_and_the_result_is_whole(redis_world: RedisWorld) -> None:
    lane = await redis_world.lane("a.b")
    items = await redis_world.items(lane, 50)
    await redis_world.pair.enqueue_many(items)
    await redis_world.link.command("FLUSHALL")
    done = await asyncio.gather(*(redis_world.mirror.ensure() for _ in range(3)))

    assert any(done)
    assert await redis_world.mirror.ensure()
    assert await order_of(redis_world.queue, lane) == ids(items)


async def test_whoever_lost_the_rebuild_to_another_process_neither_loads_nor_vouches(
    redis_world: RedisWorld,
) -> None:
    call = redis_world.link.call
    row = (7, "queued", "1:2:1:1", "{}")
    assert await call(BEGIN, "late", 1_000, 0) == 2
    assert await call(BEGIN, "first", 1_000, 1) == 1
    assert await call(BEGIN, "second", 1_000, 1) == 0
    assert await call(LOAD, "first", 1_000, *row)
    await redis_world.link.command("SET", REBUILDING, "second")

    assert not await call(LOAD, "first", 1_000, *row)
    assert not await call(VOUCH, "first")
    with pytest.raises(QueueLost):
        await redis_world.queue.get_queue_status()
    assert await call(VOUCH, "second")


async def test_a_rebuild_that_nobody_ended_is_taken_over_when_its_lease_is_over(
    redis_world: RedisWorld,
) -> None:
    await redis_world.link.call(BEGIN, "dead", 100, 1)
    begun = asyncio.get_running_loop().time()
    while not await redis_world.mirror.ensure():
        await asyncio.sleep(0.01)
        assert asyncio.get_running_loop().time() - begun < 5

    assert await redis_world.queue.get_queue_status() == QueueStatus(0, 0)


async def test_unknown_lanes_and_executions_differ_in_nothing(redis_world: RedisWorld) -> None:
    assert await redis_world.mirror.disagreeing([LaneId(4_711), None]) == []
    assert await redis_world.queue.position(ExecutionId(4_711)) is None
