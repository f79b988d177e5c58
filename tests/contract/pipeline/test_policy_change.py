"""A change of policy reaches what already waits: at once, in its order, with the slots that are held counted."""

import asyncio

from attune.catalog.steps.policies import PolicyChanges, update_policy
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World, eventually


async def test_a_limit_that_is_raised_lets_the_next_go_at_once(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    ids = await bench.ask(count=5)
    await bench.change(concurrency_limit=3)
    assert (await bench.running(), await bench.waiting()) == (ids[:3], ids[3:])


async def test_a_limit_that_is_lowered_lets_nobody_go_until_fewer_hold_a_slot(bench: Bench) -> None:
    await bench.policy(concurrency_limit=3)
    ids = await bench.ask(count=6)
    await bench.change(concurrency_limit=1)
    assert await bench.running() == ids[:3]
    await bench.end(ids[0])
    await bench.end(ids[1])
    assert await bench.running() == [ids[2]]
    await bench.end(ids[2])
    assert await bench.running() == [ids[3]]


async def test_f12_a_limit_of_zero_holds_and_says_so_and_the_largest_holds_nobody(
    bench: Bench,
) -> None:
    await bench.policy(concurrency_limit=0)
    ids = await bench.ask(count=3)
    lane = await bench.lane()
    assert (lane.active_count, lane.queue_length, lane.reason) == (0, 3, "concurrency")
    await bench.change(concurrency_limit=1)
    assert await bench.running() == ids[:1]
    await bench.change(concurrency_limit=2**31 - 1)
    assert await bench.running() == ids


async def test_a_policy_that_is_disabled_or_deleted_lets_everybody_go(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    ids = await bench.ask(count=3)
    await bench.change(enabled=False)
    assert await bench.running() == ids
    await bench.change(enabled=True)
    more = await bench.ask(count=2)
    assert await bench.waiting() == more
    await bench.drop()
    assert await bench.waiting() == []


async def test_a_first_policy_counts_what_runs_already(bench: Bench) -> None:
    ids = await bench.ask(count=3)
    await bench.policy(concurrency_limit=3)
    [late] = await bench.ask()
    assert (await bench.running(), await bench.waiting()) == (ids, [late])


async def test_groups_that_are_added_keep_the_order_and_count_the_slots_that_are_held(
    bench: Bench,
) -> None:
    await bench.policy(concurrency_limit=2)
    names = ["red", "red", "blue", "red", "blue", "red"]
    ids = [(await bench.ask(customer=name))[0] for name in names]
    await bench.change(concurrency_parameters=["customer"])
    blue = await bench.lane(group='{"customer":"blue"}')
    red = await bench.lane(group='{"customer":"red"}')
    assert (red.active_count, red.queue_length) == (2, 2)
    assert (blue.active_count, blue.queue_length) == (2, 0)
    await bench.end(ids[0])
    assert ids[3] in await bench.running()
    assert await bench.waiting() == [ids[5]]


async def test_groups_that_are_removed_become_one_line_by_age(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
    ids = []
    for name in ("red", "blue", "red", "blue", "red"):
        bench.step(1)
        ids += await bench.ask(customer=name)
    assert await bench.running() == ids[:2]
    await bench.change(concurrency_parameters=[])
    assert (await bench.running(), await bench.waiting()) == (ids[:2], ids[2:])
    await bench.end(ids[0])
    assert await bench.running() == ids[1:2]
    await bench.end(ids[1])
    assert await bench.running() == ids[2:3]


async def test_groups_by_another_parameter_move_everybody_to_the_lane_of_their_group(
    bench: Bench,
) -> None:
    await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
    first = await bench.ask(customer="red", pin="1")
    second = await bench.ask(customer="red", pin="2")
    third = await bench.ask(customer="red", pin="1", priority=Priority.HIGH)
    await bench.change(concurrency_parameters=["pin"])
    assert set(await bench.running()) == {*first, *second}
    assert await bench.waiting() == third
    await bench.change(concurrency_parameters=["customer"])
    assert await bench.waiting() == third
    used = [lane for lane in await bench.lanes() if lane.active_count]
    assert [lane.group_key for lane in used] == ['{"customer":"red"}']


async def test_a_policy_that_moves_from_an_action_to_its_pack_and_on_binds_the_others_too(
    bench: Bench,
) -> None:
    await bench.policy(concurrency_limit=2)
    ones, twos = await bench.ask("a.one", 3), await bench.ask("a.two", 2)
    assert await bench.running() == [*ones[:2], *twos]
    await bench.change(over="a")
    await bench.end(twos[0], twos[1])
    assert await bench.running() == ones[:2]
    await bench.end(ones[0])
    assert await bench.running() == ones[1:3]
    others = await bench.ask("b.one", 3)
    await bench.change(over=None)
    await bench.end(*others)
    assert await bench.running() == ones[1:3]
    assert await bench.waiting() == []


async def test_a_pack_that_loses_an_action_to_a_policy_of_its_own_gives_its_slots_to_the_others(
    bench: Bench,
) -> None:
    await bench.policy("a.pack", over="a", concurrency_limit=2)
    ones, twos = await bench.ask("a.one", 2), await bench.ask("a.two", 3)
    assert await bench.running() == ones
    await bench.policy("a.own", over="a.one", concurrency_limit=2)
    assert await bench.running() == [*ones, *twos[:2]]
    await bench.drop("a.own")
    await bench.end(*twos[:2])
    assert (await bench.running(), await bench.waiting()) == (ones, twos[2:])


async def test_whoever_asks_before_anybody_was_told_finds_the_new_limit(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1)
    ids = await bench.ask(count=3)
    changes = PolicyChanges(concurrency_limit=2)
    await bench.database.run(update_policy, "a.policy", changes, bench.clock.now())
    more = await bench.ask()
    assert (await bench.running(), await bench.waiting()) == (ids[:2], [ids[2], *more])


async def test_an_executor_hears_of_a_change_that_was_made_elsewhere(proved: World) -> None:
    await proved.policy("core.held", over="core.noop", concurrency_limit=0)
    [execution] = await proved.flow.request(Order((Request(action_ref="core.noop"),)))
    changes = PolicyChanges(concurrency_limit=1)
    await proved.database.run(update_policy, "core.held", changes, proved.clock.now())
    await proved.ended(execution.id)


async def test_f1_while_policies_change_under_load_no_limit_is_broken(proved: World) -> None:
    """Groups, limits and scopes change while three executors take orders; the log proves the rest."""
    await proved.policy("core.held", over="core.noop", concurrency_limit=2)
    flows = [proved.new_flow(f"api {n}", through=True) for n in range(3)]
    requests = tuple(
        Request(action_ref=ref, parameters={"message": str(n % 4)})
        for n in range(8)
        for ref in ("core.noop", "core.echo")
    )

    async def change() -> None:
        await proved.change("core.held", concurrency_parameters=["message"], concurrency_limit=1)
        await proved.change("core.held", over="core", concurrency_limit=3)
        await proved.change("core.held", concurrency_parameters=[])
        await proved.change("core.held", over="core.echo", concurrency_limit=2)

    orders = [flow.request(Order(requests)) for flow in flows for _ in range(3)]
    await asyncio.gather(change(), *orders)
    await proved.over()
    ended = "SELECT count(*) FROM execution WHERE status = 'completed'"

    async def all_ended() -> bool:
        return bool(await proved.value(int, ended) == 9 * len(requests))

    await eventually(all_ended)
