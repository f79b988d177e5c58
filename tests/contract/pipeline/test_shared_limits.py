"""Limits of a pack and of everything: held over all lanes, whoever is first of all gets the slot that is free."""

import asyncio

import pytest

from attune.kernel.ids import ExecutionId
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World


@pytest.mark.parametrize(("over", "others"), [("a", "a.two"), (None, "b.one")])
async def test_a_limit_over_several_actions_is_held_over_all_of_their_lanes(
    bench: Bench, over: str | None, others: str
) -> None:
    await bench.policy(over=over, concurrency_limit=3)
    ones, twos = await bench.ask("a.one", 2), await bench.ask(others, 4)
    assert await bench.running() == [*ones, twos[0]]
    assert (await bench.lane(others)).reason == "concurrency"
    await bench.end(ones[0])
    assert await bench.running() == [ones[1], *twos[:2]]


async def test_the_pack_limit_of_one_pack_leaves_another_alone(bench: Bench) -> None:
    await bench.policy(over="a", concurrency_limit=1)
    await bench.ask("a.one", 2)
    others = await bench.ask("b.one", 5)
    assert await bench.running("b.one") == others


async def test_a_freed_slot_goes_to_the_head_of_another_lane_if_that_is_the_oldest(
    bench: Bench,
) -> None:
    await bench.policy(over="a", concurrency_limit=1)
    order: list[ExecutionId] = []
    for ref in ("a.one", "a.two", "a.one", "a.two"):
        bench.step(1)
        order += await bench.ask(ref)
    for number, one in enumerate(order):
        assert await bench.running() == order[number : number + 1]
        await bench.end(one)


async def test_heads_compete_by_band_and_then_by_age(bench: Bench) -> None:
    await bench.policy(over="a", concurrency_limit=1)
    first = await bench.ask("a.one")
    wanted = []
    for ref, word in (
        ("a.one", Priority.LOW),
        ("a.two", Priority.NORMAL),
        ("a.one", Priority.NORMAL),
        ("a.two", Priority.CRITICAL),
        ("a.one", Priority.CRITICAL),
    ):
        bench.step(1)
        wanted += await bench.ask(ref, priority=word)
    low, normal, normal_too, critical, critical_too = wanted
    await bench.end(*first)
    for one in (critical, critical_too, normal, normal_too, low):
        assert await bench.running() == [one]
        await bench.end(one)


async def test_groups_of_a_pack_share_a_limit_by_value_over_its_actions(bench: Bench) -> None:
    await bench.policy(over="a", concurrency_limit=1, concurrency_parameters=["customer"])
    red = await bench.ask("a.one", customer="red")
    red_too = await bench.ask("a.two", customer="red")
    blue = await bench.ask("a.two", customer="blue")
    assert await bench.running() == [*red, *blue]
    await bench.end(*red)
    assert set(await bench.running()) == {*red_too, *blue}


async def test_a_paused_lane_leaves_the_shared_slot_to_the_others(bench: Bench) -> None:
    await bench.policy(over="a", concurrency_limit=1)
    first = await bench.ask("a.one")
    paused = await bench.ask("a.one")
    bench.step(1)
    younger = await bench.ask("a.two")
    await bench.flow.pause("a.one", None, "eva")
    await bench.end(*first)
    assert (await bench.running(), await bench.waiting()) == (younger, paused)


async def test_f1_f4_racing_executors_never_exceed_a_shared_limit_and_lose_no_slot(
    proved: World,
) -> None:
    """Every slot is freed by the worker's flow, and given on by it, whoever took the order."""
    await proved.policy("core.all", over="core", concurrency_limit=2)
    flows = [proved.new_flow(f"executor {n}", through=True) for n in range(2)]
    requests = [Request(action_ref=ref) for ref in ("core.noop", "core.echo", "core.noop")]
    seen: list[int] = []

    async def watch() -> None:
        held = "SELECT count(*) FROM entry WHERE state <> 'queued'"
        while await proved.value(int, "SELECT count(*) FROM entry"):
            seen.append(await proved.value(int, held))

    orders = (flow.request(Order(tuple(requests))) for flow in flows for _ in range(10))
    await asyncio.gather(*orders)
    await asyncio.gather(watch(), *(flow.promote() for flow in flows for _ in range(3)))
    assert max(seen, default=0) <= 2
    assert await proved.value(int, "SELECT sum(total_completed) FROM lane") == 60
    assert await proved.value(int, "SELECT sum(active_count) FROM pool") == 0
