"""What the policies say of an action before anything is asked for."""

from attune.kernel.ids import IdentityId, LaneId
from attune.pipeline.policies.model import GateName
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.whys import enforcer, names

G = GateName


async def test_the_limit_is_that_of_the_one_policy_in_effect(bench: Bench) -> None:
    found = enforcer(bench)
    assert await found.get_concurrency_limit("a.one") is None
    await bench.policy("a.all", over=None, concurrency_limit=1, priority=9)
    await bench.policy("a.pack", over="a", concurrency_limit=2)
    await bench.policy("a.action", over="a.one", concurrency_limit=3)
    limits = [await found.get_concurrency_limit(ref) for ref in ("a.one", "a.two", "b.one")]
    assert limits == [3, 2, 1]


async def test_a_limit_that_follows_the_action_is_told_as_it_is_now(bench: Bench) -> None:
    await bench.policy(concurrency_limit="auto", concurrency_floor=2, concurrency_ceiling=9)
    assert await enforcer(bench).get_concurrency_limit("a.one") == 2
    await bench.ask()
    await bench.flow.change_limit(LaneId((await bench.lane()).id), 5, "it is fast")
    assert await enforcer(bench).get_concurrency_limit("a.one") == 5


async def test_everything_but_concurrency_is_checked_in_order(bench: Bench) -> None:
    found = enforcer(bench)
    assert await found.check_policies_except_concurrency("a.one") is None
    await bench.policy(concurrency_limit=1, rate_limit={"max_executions": 2, "window_seconds": 9})
    await bench.ask()
    assert await found.check_policies_except_concurrency("a.one") is None
    assert names(await found.enforce("a.one")) == [G.CONCURRENCY]
    await bench.change(concurrency_limit=9)
    await bench.ask()
    gate = await found.check_policies_except_concurrency("a.one")
    assert gate is not None
    assert gate.name is G.RATE_LIMIT
    await bench.flow.pause("a.one", None, "olga")
    assert names(await found.enforce("a.one")) == [G.PAUSE, G.RATE_LIMIT]


async def test_a_quota_that_is_used_up_is_a_violation(bench: Bench) -> None:
    quota = {"quota_type": "executions_total", "limit": 1, "per": "identity"}
    await bench.policy(quotas=[quota])
    found = enforcer(bench)
    assert await found.get_concurrency_limit("a.one") is None
    assert await found.enforce("a.one", {}, IdentityId(7)) == []
    await bench.ask(executor=7)
    gate = await found.check_policies_except_concurrency("a.one", {}, IdentityId(7))
    assert gate is not None
    assert (gate.name, gate.limit, gate.policy_ref) == (G.QUOTA, 1, "a.policy")
    assert await found.enforce("a.one", {}, IdentityId(8)) == []


async def test_parameters_choose_the_group_and_a_pack_shares_its_limit(bench: Bench) -> None:
    await bench.policy(over="a", concurrency_limit=1, concurrency_parameters=["customer"])
    await bench.ask("a.one", customer="x")
    found = enforcer(bench)
    assert names(await found.enforce("a.two", {"customer": "x"})) == [G.CONCURRENCY]
    assert await found.enforce("a.two", {"customer": "y"}) == []


async def test_a_full_queue_has_no_room_behind_it(bench: Bench) -> None:
    await bench.policy(concurrency_limit=0)
    await bench.set(max_queue_length=2)
    await bench.ask(count=2)
    found = await enforcer(bench).enforce("a.one")
    assert names(found) == [G.CONCURRENCY, G.TURN]
    assert found[1].text == "the queue is full: 2 of at most 2 wait in it"
