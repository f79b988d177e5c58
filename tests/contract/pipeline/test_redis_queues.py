"""With queues in Redis the same promises hold, and the database keeps them when Redis does not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis as Client

from attune.catalog.retrying import Retry
from attune.catalog.steps.actions import NewAction, create_action
from attune.kernel.configuration import load_settings
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus as S
from attune.pipeline.executions.model import Execution, Priority, Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.processors.retry_release import RetryRelease
from harness.control_plane import eventually
from harness.redis import Redis
from tests.contract.pipeline.proofs import prove
from tests.contract.pipeline.world import World


@pytest.fixture(params=["embedded", "servers"])
async def world(
    request: pytest.FixtureRequest, tmp_path: Path, redis_url: str
) -> AsyncIterator[World]:
    """With an executor and a worker of ten slots, as separate processes have it."""
    environ = {
        "ATTUNE__DATA_DIR": str(tmp_path),
        "ATTUNE__REDIS__URL": redis_url,
        "ATTUNE__EXECUTOR__QUEUE__BACKEND": "redis",
    }
    if request.param == "servers":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("migrated_url")
        environ["ATTUNE__MESSAGE_QUEUE__URL"] = request.getfixturevalue("rabbitmq_url")
    async with World(load_settings(environ), through=False) as world:
        await world.start_worker()
        await world.start_executor()
        yield world


async def asked(world: World, *priorities: Priority, action: str = "core.noop") -> list[Execution]:
    parameters = {"seconds": 60} if action == "core.sleep" else {}
    requests = tuple(
        Request(action_ref=action, priority=each, parameters=parameters) for each in priorities
    )
    return await world.flow.request(Order(requests))


async def keys(url: str, pattern: str) -> dict[str, Any]:
    """What stands under the keys: sets as sets of ids, sorted sets as scores by id."""
    async with Client.from_url(url) as client:
        found: dict[str, Any] = {}
        async for key in client.scan_iter(match=pattern):
            if await client.type(key) == b"zset":
                scores: Any = await client.zrange(key, 0, -1, withscores=True)
                found[key.decode()] = {int(name): score for name, score in scores}
            else:
                found[key.decode()] = {int(name) for name in await client.smembers(key)}
        return found


async def test_all_run_and_in_a_lane_of_one_they_start_in_their_order(world: World) -> None:
    await world.limit("core.noop", 1)
    executions = await asked(world, *[Priority.NORMAL] * 30)
    await world.over()
    done = [await world.execution(one.id) for one in executions]
    assert {one.status for one in done} == {S.COMPLETED}
    starts = [one.started_at for one in done if one.started_at]
    assert starts == sorted(starts)
    await prove(world)


async def test_keys_are_those_of_the_contract(world: World, redis_url: str) -> None:
    await world.limit("core.sleep", 1)
    low, high, critical = await asked(
        world, Priority.LOW, Priority.HIGH, Priority.CRITICAL, action="core.sleep"
    )

    async def pending() -> dict[int, float]:
        found = await keys(redis_url, "exec_queue:pending:*")
        return next((scores for scores in found.values() if len(scores) == 2), {})

    scores = await eventually(pending)
    running = ({low.id, high.id, critical.id} - scores.keys()).pop()
    bands = {one.id: int(one.priority) for one in (low, high, critical)}
    assert {each: int(score // 10**12) for each, score in scores.items()} == {
        each: band for each, band in bands.items() if each != running
    }
    active = await keys(redis_url, "exec_queue:active:*")
    assert running in set().union(*active.values())
    async with Client.from_url(redis_url) as client:
        assert await client.exists(f"exec_queue:event:{low.id}")


async def test_a_change_of_priority_reaches_redis(world: World) -> None:
    await world.limit("core.noop", 0)
    first, second = await asked(world, Priority.NORMAL, Priority.NORMAL)
    await world.flow.reprioritize(second.id, Priority.CRITICAL, "a test")
    await world.limit("core.noop", 1)
    done = [await world.ended(one.id) for one in (first, second)]
    assert done[1].started_at < done[0].started_at  # type: ignore[operator]
    await prove(world)


async def test_pause_and_resume(world: World) -> None:
    await world.flow.pause("core.noop", None, "a test")
    executions = await asked(world, Priority.NORMAL, Priority.NORMAL)
    assert {(await world.execution(one.id)).status for one in executions} == {S.REQUESTED}
    await world.flow.resume("core.noop", None, "a test")
    await world.over()
    await prove(world)


async def test_flushed_in_the_middle_nothing_is_lost_and_no_limit_is_broken(
    world: World, redis_server: Redis
) -> None:
    await world.limit("core.noop", 2)
    first = await asked(world, *[Priority.NORMAL] * 20)
    redis_server.flush()
    second = await asked(world, *[Priority.NORMAL] * 20)
    await world.over()
    statuses = {(await world.execution(one.id)).status for one in [*first, *second]}
    assert statuses == {S.COMPLETED}
    await prove(world)


async def test_while_redis_is_dead_the_database_admits_and_afterwards_it_is_rebuilt(
    world: World, redis_server: Redis, redis_url: str
) -> None:
    await world.limit("core.noop", 2)
    redis_server.kill()
    away = await asked(world, *[Priority.NORMAL] * 10)
    for one in away:
        assert (await world.ended(one.id)).status is S.COMPLETED
    redis_server.ensure_running()
    await world.limit("core.noop", 0)
    back = await asked(world, *[Priority.NORMAL] * 3)
    await world.start_executor(fallback=0.5)  # another one, that looks often

    async def mirrored() -> bool:
        ids = {one.id for one in back}
        return any(
            ids == each.keys() for each in (await keys(redis_url, "exec_queue:pending:*")).values()
        )

    assert await eventually(mirrored)
    await world.limit("core.noop", 5)
    await world.over()
    await prove(world)


async def test_a_cancelled_one_leaves_redis_too(world: World, redis_url: str) -> None:
    await world.limit("core.noop", 0)
    [one] = await asked(world, Priority.NORMAL)

    async def known() -> bool:
        found = await keys(redis_url, "exec_queue:pending:*")
        return any(one.id in each for each in found.values())

    async def unknown() -> bool:
        return not await known()

    assert await eventually(known)
    await world.flow.cancel(ExecutionId(one.id))
    assert await eventually(unknown)


async def failing(world: World, count: int, most: int, **how: Any) -> list[Execution]:
    """Executions of an action that fails at every attempt."""
    new = NewAction(
        ref="core.fails",
        pack_ref="core",
        label="Fails",
        runtime_ref="core.shell",
        entrypoint="exit 3",
    )
    await world.database.run(create_action, new, world.clock.now())
    await world.limit("core.fails", 1)
    request = Request(action_ref="core.fails", max_retries=most, retry=Retry(**how))
    return await world.flow.request(Order((request,) * count))


async def test_one_that_rests_between_two_attempts_is_in_no_set(
    world: World, redis_url: str
) -> None:
    ids = {one.id for one in await failing(world, 3, 1, delay=3600)}

    async def all_rest() -> bool:
        return bool(await world.value(int, "SELECT count(*) FROM delay") == len(ids))

    async def unknown() -> bool:
        found = await keys(redis_url, "exec_queue:pending*")
        found |= await keys(redis_url, "exec_queue:active*")
        return not any(ids.intersection(each) for each in found.values())

    assert await eventually(all_rest)
    assert await eventually(unknown)
    assert await world.flow.clear("core.fails", None, "a test") == len(ids)
    await prove(world)


@pytest.mark.parametrize(("place", "delay"), [("keep", 0.2), ("tail", 0.2), ("keep", 0)])
async def test_attempts_that_fail_are_followed_by_others_to_the_last(
    world: World, place: str, delay: float
) -> None:
    release = RetryRelease(world.executor_flow, world.clock)
    await release.start()
    try:
        executions = await failing(world, 4, 2, delay=delay, queue_place=place)
        done = [await world.ended(one.id) for one in executions]
    finally:
        await release.stop()
    assert [(one.status, one.attempt) for one in done] == [(S.FAILED, 3)] * 4
    recorded = "SELECT count(*) FROM execution_attempt WHERE cause = 'failed'"
    assert await world.value(int, recorded) == 8
    await prove(world)
