"""max_concurrent_executions: how many workers may have at once, over all lanes, executors and workers."""

import asyncio

from attune.catalog.runtime_settings import change_settings
from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World, eventually

HANDED = "SELECT execution FROM entry WHERE state = 'handed' ORDER BY execution"
READY = "SELECT execution FROM entry WHERE state = 'ready' ORDER BY execution"


async def handed(world: World) -> list[ExecutionId]:
    return await world.values(ExecutionId, HANDED)


async def test_it_caps_what_workers_have_over_all_lanes_and_raising_it_hands_over_more(
    bench: Bench,
) -> None:
    await bench.set(max_concurrent_executions=3)
    await bench.come("second", 10)
    ids = [*await bench.ask("a.one", 2), *await bench.ask("b.one", 4)]
    assert await handed(bench) == ids[:3]
    assert await bench.values(int, READY) == ids[3:]
    assert await bench.end(ids[0]) == [ids[3]]
    await bench.set(max_concurrent_executions=4)
    await bench.flow.promote()
    assert await handed(bench) == ids[1:5]


async def test_unset_the_workers_capacity_is_the_cap(bench: Bench) -> None:
    await bench.execute("UPDATE worker SET capacity = 2")
    ids = await bench.ask(count=5)
    assert await handed(bench) == ids[:2]
    await bench.come("second", 2)
    await bench.flow.schedule()
    assert await handed(bench) == ids[:4]


async def test_zero_holds_everything_until_it_is_unset(bench: Bench) -> None:
    await bench.set(max_concurrent_executions=0)
    ids = await bench.ask(count=3)
    assert await handed(bench) == []
    assert await bench.values(int, READY) == ids
    await bench.set(max_concurrent_executions=None)
    await bench.flow.promote()
    assert await handed(bench) == ids


async def test_a_cap_that_is_lowered_hands_nothing_over_until_fewer_run(bench: Bench) -> None:
    ids = await bench.ask(count=3)
    await bench.set(max_concurrent_executions=1)
    late = await bench.ask()
    assert await bench.end(ids[0]) == []
    assert await bench.end(ids[1]) == []
    assert await bench.end(ids[2]) == late


async def test_what_is_ready_competes_by_band_and_then_by_age(bench: Bench) -> None:
    await bench.set(max_concurrent_executions=1)
    [first] = await bench.ask("b.one")
    wanted: list[ExecutionId] = []
    for ref, word in (
        ("a.one", Priority.BACKGROUND),
        ("a.two", Priority.NORMAL),
        ("a.one", Priority.NORMAL),
        ("b.one", Priority.CRITICAL),
    ):
        bench.step(1)
        wanted += await bench.ask(ref, priority=word)
    background, normal, normal_too, critical = wanted
    order = [first, critical, normal, normal_too, background]
    for one, following in zip(order, [*order[1:], None], strict=True):
        assert await handed(bench) == [one]
        assert await bench.end(one) == ([following] if following else [])


async def test_with_ageing_background_goes_within_its_bound(bench: Bench) -> None:
    """Four bands of ten seconds: nothing that came more than forty seconds later goes before it."""
    await bench.set(max_concurrent_executions=1, ageing_seconds=10)
    [running] = await bench.ask()
    [background] = await bench.ask(priority=Priority.BACKGROUND)
    passed = 0
    for _ in range(10):
        bench.step(8)
        await bench.ask("a.two", priority=Priority.CRITICAL)
        [running] = await bench.end(running)
        if running == background:
            break
        passed += 1
    assert passed == 5


async def test_the_log_of_a_cap_proves_an_order_in_which_waiting_was_worth_bands(
    bench: Bench,
) -> None:
    await bench.set(max_concurrent_executions=0, ageing_seconds=1)
    [background] = await bench.ask(priority=Priority.BACKGROUND)
    bench.step(60)
    [critical] = await bench.ask("a.two", priority=Priority.CRITICAL)
    await bench.set(max_concurrent_executions=1)
    await bench.flow.promote()
    assert await handed(bench) == [background]
    [normal] = await bench.ask("b.one")
    await bench.set(max_concurrent_executions=3)
    await bench.flow.promote()
    assert await handed(bench) == [background, critical, normal]
    await bench.end(background, critical, normal)
    await bench.set(max_concurrent_executions=0)
    [background] = await bench.ask(priority=Priority.BACKGROUND)
    bench.step(60)
    [critical] = await bench.ask("a.two", priority=Priority.CRITICAL)
    await bench.set(max_concurrent_executions=2)
    await bench.flow.promote()
    assert await handed(bench) == [background, critical]


async def test_a_background_head_of_a_shared_limit_goes_within_its_bound(bench: Bench) -> None:
    await bench.set(ageing_seconds=10)
    await bench.policy(over="a", concurrency_limit=1)
    [running] = await bench.ask()
    [background] = await bench.ask("a.two", priority=Priority.BACKGROUND)
    passed = 0
    for _ in range(10):
        bench.step(8)
        await bench.ask(priority=Priority.CRITICAL)
        await bench.end(running)
        [running] = await bench.running()
        if running == background:
            break
        passed += 1
    assert passed == 5


async def test_an_executor_hears_of_a_cap_that_is_raised(proved: World) -> None:
    """It was changed in another process: what waits goes on without a poll."""
    await proved.database.run(
        change_settings, {"max_concurrent_executions": 0}, None, proved.clock.now()
    )
    execution = await proved.run("core.noop")
    assert await proved.values(int, READY) == [execution.id]
    await proved.database.run(
        change_settings, {"max_concurrent_executions": 1}, None, proved.clock.now()
    )
    await proved.ended(execution.id)


async def test_f1_several_executors_and_workers_never_exceed_it(proved: World) -> None:
    await proved.start_worker("second")
    await proved.database.run(
        change_settings, {"max_concurrent_executions": 3}, None, proved.clock.now()
    )
    flows = [proved.new_flow(f"executor {n}", through=True) for n in range(3)]
    requests = tuple(Request(action_ref=ref) for ref in ("core.noop", "core.echo") * 2)
    seen: list[int] = []

    async def watch() -> None:
        while await proved.value(int, "SELECT count(*) FROM entry"):
            seen.append(len(await handed(proved)))

    await asyncio.gather(*(flow.request(Order(requests)) for flow in flows for _ in range(4)))
    await asyncio.gather(watch(), *(flow.schedule() for flow in flows for _ in range(4)))
    assert max(seen, default=0) <= 3
    most = "SELECT max(active_after) FROM decision WHERE lane = 0"

    async def all_ended() -> bool:
        ended = "SELECT count(*) FROM execution WHERE status = 'completed'"
        return bool(await proved.value(int, ended) == 48)

    await eventually(all_ended)
    assert await proved.value(int, most) == 3
