"""What every queue does, whatever it is made of."""

from datetime import timedelta

import pytest

from attune.kernel.errors import InvalidInput
from attune.kernel.ids import ExecutionId, LaneId
from attune.pipeline.executions.model import Priority
from attune.pipeline.queues.port import QueueStatus
from tests.contract.queues.worlds import World, ids, order_of

NOBODY = ExecutionId(9_999)


async def test_whoever_comes_is_told_the_position(world: World) -> None:
    lane = await world.lane("a.b")
    positions = [await world.queue.enqueue(item) for item in await world.items(lane, 3)]
    urgent = await world.queue.enqueue(await world.item(lane, Priority.CRITICAL))

    assert positions == [1, 2, 3]
    assert urgent == 1


@pytest.mark.parametrize("named", [True, False])
async def test_within_a_band_the_first_to_come_goes_first(world: World, named: bool) -> None:
    lane = await world.lane("a.b") if named else None
    items = await world.items(lane, 12)
    await world.queue.enqueue_many(items)

    assert await order_of(world.queue, lane) == ids(items)


@pytest.mark.parametrize("named", [True, False])
async def test_a_higher_band_goes_before_all_lower_ones(world: World, named: bool) -> None:
    lane = await world.lane("a.b") if named else None
    items = [await world.item(lane, priority) for priority in reversed(Priority)]
    for item in items:
        await world.queue.enqueue(item)

    assert await order_of(world.queue, lane) == ids(items)[::-1]


async def test_the_lane_alone_orders_those_who_came_late_to_redis(world: World) -> None:
    lane = await world.lane("a.b")
    first, second, third = await world.items(lane, 3)
    for item in (third, first, second):
        await world.queue.enqueue(item)

    assert await order_of(world.queue, lane) == ids([first, second, third])


async def test_to_be_enqueued_twice_changes_nothing(world: World) -> None:
    lane = await world.lane("a.b")
    first, second = await world.items(lane, 2)
    await world.queue.enqueue_many([first, second])

    assert await world.queue.enqueue(first) == 1
    assert await world.queue.enqueue_many([first, second]) == 0
    assert await world.queue.get_queue_status(lane) == QueueStatus(2, 0)


async def test_one_that_has_a_slot_is_not_enqueued_again(world: World) -> None:
    lane = await world.lane("a.b")
    item = await world.item(lane)
    await world.queue.enqueue(item)
    await world.queue.try_schedule(None, lane)

    assert await world.queue.enqueue(item) == 1  # it waits in the system now, as the first
    await world.queue.try_schedule(None)
    assert await world.queue.enqueue(item) == 0
    assert await world.queue.get_queue_status(lane) == QueueStatus(0, 1)


async def test_what_is_scheduled_is_what_was_enqueued(world: World) -> None:
    lane = await world.lane("a.b")
    item = await world.item(lane, Priority.LOW, later=timedelta(microseconds=123_457))
    await world.queue.enqueue(item)

    assert await world.queue.try_schedule(1, lane) == item
    assert await world.queue.try_schedule(1) == item


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("most", [0, 1, 3])
async def test_no_more_are_scheduled_than_may_be_active(
    world: World, most: int, named: bool
) -> None:
    lane = await world.lane("a.b") if named else None
    await world.queue.enqueue_many(await world.items(lane, 5))
    given = await world.queue.try_schedule_many(lane, most, 5)

    assert len(given) == most
    assert await world.queue.try_schedule(most, lane) is None
    assert await world.queue.get_queue_status(lane) == QueueStatus(5 - most, most)


async def test_without_a_limit_all_are_scheduled(world: World) -> None:
    lane = await world.lane("a.b")
    items = await world.items(lane, 5)
    await world.queue.enqueue_many(items)

    assert await world.queue.try_schedule_many(lane, None, 9) == items
    assert await world.queue.try_schedule_many(lane, None, 9) == []


async def test_a_limit_that_fell_below_the_active_holds_until_enough_are_released(
    world: World,
) -> None:
    lane = await world.lane("a.b")
    items = await world.items(lane, 4)
    await world.queue.enqueue_many(items)
    await world.queue.try_schedule_many(lane, 3, 3)

    assert await world.queue.try_schedule(1, lane) is None
    await world.queue.release_many(ids(items[:2]))
    assert await world.queue.try_schedule(1, lane) is None
    await world.queue.release(items[2].execution)
    assert await world.queue.try_schedule(1, lane) == items[3]


@pytest.mark.parametrize(("most", "count"), [(-1, 1), (1, -1)])
async def test_numbers_below_zero_are_refused(world: World, most: int, count: int) -> None:
    with pytest.raises(InvalidInput, match="must be 0 or more"):
        await world.queue.try_schedule_many(None, most, count)


async def test_a_slot_is_freed_once(world: World) -> None:
    lane = await world.lane("a.b")
    items = await world.items(lane, 2)
    await world.queue.enqueue_many(items)
    first = items[0].execution
    await world.queue.try_schedule(1, lane)

    assert await world.queue.release(first)
    assert not await world.queue.release(first)
    assert await world.queue.get_queue_status(lane) == QueueStatus(1, 0)


async def test_whoever_holds_no_slot_frees_none(world: World) -> None:
    lane = await world.lane("a.b")
    waiting = await world.item(lane)
    alone = await world.item()
    await world.queue.enqueue_many([waiting, alone])

    assert await world.queue.release_many([waiting.execution, alone.execution, NOBODY]) == set()
    assert await world.queue.get_queue_status(lane) == QueueStatus(1, 0)
    assert await world.queue.get_queue_status() == QueueStatus(1, 0)


async def test_the_end_frees_the_slot_of_the_lane_and_of_the_system(world: World) -> None:
    lane = await world.lane("a.b")
    items = await world.items(lane, 2)
    await world.queue.enqueue_many(items)
    await world.queue.try_schedule_many(lane, None, 2)
    await world.queue.put_back(items[1].execution)
    await world.queue.try_schedule(None)
    await world.queue.try_schedule(None, lane)

    assert await world.queue.release_many(ids(items)) == set(ids(items))
    assert await world.queue.get_queue_status(lane) == QueueStatus(0, 0)
    assert await world.queue.get_queue_status() == QueueStatus(0, 0)


async def test_those_with_a_slot_of_a_lane_wait_in_the_system_by_band_then_age(
    world: World,
) -> None:
    one, other = await world.lane("a.b"), await world.lane("a.c")
    old = await world.item(one)
    young = await world.item(other)
    urgent = await world.item(one, Priority.HIGH)
    await world.queue.enqueue_many([old, young, urgent])
    for lane in (other, one):
        await world.queue.try_schedule_many(lane, None, 9)

    assert await world.queue.get_queue_status() == QueueStatus(3, 0)
    assert await order_of(world.queue, None) == ids([urgent, old, young])
    assert await world.queue.get_queue_status() == QueueStatus(0, 3)
    assert await world.queue.get_queue_status(one) == QueueStatus(0, 2)


async def test_those_of_one_moment_wait_in_the_system_by_their_number(world: World) -> None:
    lane = await world.lane("a.b")
    items = [await world.item(lane, later=timedelta(0)) for _ in range(8)]
    await world.queue.enqueue_many(items)
    given = await world.queue.try_schedule_many(lane, None, 9)

    assert [await world.queue.position(item.execution) for item in items] == [*range(1, 9)]
    assert given == items
    assert await world.queue.try_schedule_many(None, None, 3) == items[:3]
    assert await order_of(world.queue, None) == ids(items[3:])


async def test_those_of_one_moment_in_several_lanes_go_by_number_then_id(world: World) -> None:
    lanes = [await world.lane(f"a.{i}") for i in range(4)]
    long = [await world.item(lanes[0], later=timedelta(0)) for _ in range(3)]
    heads = [await world.item(lane, later=timedelta(0)) for lane in lanes[1:]]
    await world.queue.enqueue_many([*long, *heads])
    for lane in lanes:
        await world.queue.try_schedule_many(lane, None, 9)
    expected = ids([long[0], *heads, *long[1:]])

    assert [await world.queue.position(one) for one in expected] == [*range(1, 7)]
    assert await order_of(world.queue, None) == expected


async def test_a_microsecond_decides(world: World) -> None:
    lanes = [await world.lane(f"a.{i}") for i in range(12)]
    items = [await world.item(lane, later=timedelta(microseconds=1)) for lane in lanes]
    await world.queue.enqueue_many(items[::-1])
    for lane in lanes[::-1]:
        await world.queue.try_schedule(1, lane)

    assert await order_of(world.queue, None) == ids(items)


async def test_another_priority_moves_one_and_keeps_its_number(world: World) -> None:
    lane = await world.lane("a.b")
    first, second, third = items = await world.items(lane, 3)
    await world.queue.enqueue_many(items)

    assert await world.queue.update_priority(third.execution, Priority.HIGH)
    assert await world.queue.position(third.execution) == 1
    assert await world.queue.update_priority(second.execution, Priority.HIGH)
    assert await order_of(world.queue, lane) == ids([second, third, first])


async def test_another_priority_moves_one_that_waits_for_a_worker(world: World) -> None:
    lane = await world.lane("a.b")
    first, second = items = await world.items(lane, 2)
    await world.queue.enqueue_many(items)
    await world.queue.try_schedule_many(lane, None, 2)

    assert await world.queue.update_priority(second.execution, Priority.CRITICAL)
    assert await order_of(world.queue, None) == ids([second, first])


async def test_only_what_waits_gets_another_priority(world: World) -> None:
    item = await world.item()
    await world.queue.enqueue(item)
    await world.queue.try_schedule(None)

    assert not await world.queue.update_priority(item.execution, Priority.HIGH)
    assert not await world.queue.update_priority(NOBODY, Priority.HIGH)


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_what_is_removed_stands_nowhere(world: World, steps: int) -> None:
    lane = await world.lane("a.b")
    item = await world.item(lane)
    await world.queue.enqueue(item)
    for where in (lane, None)[:steps]:
        await world.queue.try_schedule(None, where)

    assert await world.queue.remove(item.execution)
    assert not await world.queue.remove(item.execution)
    assert not await world.queue.release(item.execution)
    assert await world.queue.get_queue_status(lane) == QueueStatus(0, 0)
    assert await world.queue.get_queue_status() == QueueStatus(0, 0)


async def test_what_is_put_back_stands_where_it_stood(world: World) -> None:
    lane = await world.lane("a.b")
    items = await world.items(lane, 3)
    first = items[0].execution
    await world.queue.enqueue_many(items)
    await world.queue.try_schedule_many(lane, None, 2)
    await world.queue.try_schedule(None)

    assert await world.queue.put_back(first)
    assert await world.queue.get_queue_status() == QueueStatus(2, 0)
    assert await world.queue.position(first) == 1
    assert await world.queue.put_back(first)
    assert await world.queue.get_queue_status(lane) == QueueStatus(2, 1)
    assert not await world.queue.put_back(first)
    assert await order_of(world.queue, lane) == ids([items[0], items[2]])


async def test_one_without_a_lane_cannot_be_put_back_further_than_the_system(world: World) -> None:
    item = await world.item()
    await world.queue.enqueue(item)
    await world.queue.try_schedule(None)

    assert await world.queue.put_back(item.execution)
    assert not await world.queue.put_back(item.execution)
    assert not await world.queue.put_back(NOBODY)
    assert await world.queue.get_queue_status() == QueueStatus(1, 0)


async def test_the_breakdown_names_every_band(world: World) -> None:
    lane = await world.lane("a.b")
    for priority, count in ((Priority.HIGH, 2), (Priority.BACKGROUND, 1)):
        for _ in range(count):
            await world.queue.enqueue(await world.item(lane, priority))
    expected = dict.fromkeys(Priority, 0)

    assert await world.queue.get_pending_by_priority() == expected
    expected |= {Priority.HIGH: 2, Priority.BACKGROUND: 1}
    assert await world.queue.get_pending_by_priority(lane) == expected


async def test_a_lane_that_nobody_knows_is_empty(world: World) -> None:
    nowhere = LaneId(4_711)

    assert await world.queue.try_schedule(None, nowhere) is None
    assert await world.queue.get_queue_status(nowhere) == QueueStatus(0, 0)
    assert await world.queue.position(NOBODY) is None


async def test_lanes_do_not_touch_each_other(world: World) -> None:
    full, free = await world.lane("a.b"), await world.lane("a.c")
    await world.queue.enqueue_many([*await world.items(full, 2), *await world.items(free, 2)])
    await world.queue.try_schedule(1, full)

    assert await world.queue.try_schedule(1, full) is None
    assert await world.queue.try_schedule(1, free) is not None


async def test_a_retry_takes_its_old_place_or_the_end(world: World) -> None:
    lane = await world.lane("a.b")
    first, second, third = items = await world.items(lane, 3)
    await world.queue.enqueue_many(items)
    await world.queue.try_schedule_many(lane, 2, 2)
    await world.queue.release_many(ids([first, second]))
    tail = await world.item(lane)
    await world.queue.enqueue(second)
    await world.queue.enqueue(tail)

    assert await order_of(world.queue, lane) == ids([second, third, tail])
