"""The specification's tests of the policy enforcer, under its names."""

import pytest

from attune.kernel.ids import IdentityId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.policies.model import GateName
from attune.pipeline.queues.enforcer import PolicyEnforcer
from attune.pipeline.queues.model import QueueTerms
from tests.contract.pipeline.bench import Bench

S = ExecutionStatus


@pytest.fixture
def enforcer(bench: Bench) -> PolicyEnforcer:
    return PolicyEnforcer(bench.database, bench.flow.arranger.book, QueueTerms(), bench.clock)


async def test_get_concurrency_limit_of_an_action(bench: Bench, enforcer: PolicyEnforcer) -> None:
    assert await enforcer.get_concurrency_limit("a.one") is None
    await bench.policy(over="a.one", concurrency_limit=5)
    assert await enforcer.get_concurrency_limit("a.one") == 5
    assert await enforcer.get_concurrency_limit("a.two") is None


async def test_get_concurrency_limit_of_a_pack(bench: Bench, enforcer: PolicyEnforcer) -> None:
    await bench.policy(over="a", concurrency_limit=10)
    found = [await enforcer.get_concurrency_limit(ref) for ref in ("a.one", "a.two", "b.one")]
    assert found == [10, 10, None]


async def test_get_concurrency_limit_of_everything(bench: Bench, enforcer: PolicyEnforcer) -> None:
    await bench.policy(over=None, concurrency_limit=20)
    found = [await enforcer.get_concurrency_limit(ref) for ref in ("a.one", "b.one")]
    assert found == [20, 20]


async def test_get_concurrency_limit_precedence(bench: Bench, enforcer: PolicyEnforcer) -> None:
    await bench.policy("a.all", over=None, concurrency_limit=20, priority=100)
    await bench.policy("a.pack", over="a", concurrency_limit=10, priority=50)
    await bench.policy("a.action", over="a.one", concurrency_limit=5)
    found = [await enforcer.get_concurrency_limit(ref) for ref in ("a.one", "a.two", "b.one")]
    assert found == [5, 10, 20]


async def test_get_concurrency_limit_of_one_that_follows_its_action(
    bench: Bench, enforcer: PolicyEnforcer
) -> None:
    await bench.policy(concurrency_limit="auto", concurrency_floor=2, concurrency_ceiling=9)
    assert await enforcer.get_concurrency_limit("a.one") == 2


async def test_check_policies_except_concurrency(bench: Bench, enforcer: PolicyEnforcer) -> None:
    """A full limit is not its business; a rate and a quota that are used up are."""
    rate = {"max_executions": 1, "window_seconds": 60}
    await bench.policy(concurrency_limit=1, rate_limit=rate)
    assert await enforcer.check_policies_except_concurrency("a.one") is None
    await bench.ask()
    gate = await enforcer.check_policies_except_concurrency("a.one")
    assert gate is not None
    assert (gate.name, gate.policy_ref) == (GateName.RATE_LIMIT, "a.policy")
    await bench.change(rate_limit=None)
    assert await enforcer.check_policies_except_concurrency("a.one") is None


async def test_check_policies_except_concurrency_of_one_identity(
    bench: Bench, enforcer: PolicyEnforcer
) -> None:
    quota = {"quota_type": "executions_total", "limit": 1, "per": "identity"}
    await bench.policy(quotas=[quota])
    await bench.ask(executor=7)
    used = await enforcer.check_policies_except_concurrency("a.one", identity=IdentityId(7))
    assert used is not None
    assert used.name is GateName.QUOTA
    free = await enforcer.check_policies_except_concurrency("a.one", identity=IdentityId(8))
    assert free is None


async def test_enforce_and_wait_with_queue_manager(bench: Bench, enforcer: PolicyEnforcer) -> None:
    """What the enforcer says of an execution is what becomes of it when it is asked for."""
    await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
    assert await enforcer.enforce("a.one", {"customer": "red"}) == []
    red = await bench.ask(customer="red")
    assert await bench.running() == red
    [gate] = await enforcer.enforce("a.one", {"customer": "red"})
    assert (gate.name, gate.limit) == (GateName.CONCURRENCY, 1)
    assert await bench.ask(customer="red") == await bench.waiting()
    assert await enforcer.enforce("a.one", {"customer": "blue"}) == []
    await bench.flow.pause("a.one", None, "eva")
    names = [gate.name for gate in await enforcer.enforce("a.one", {"customer": "red"})]
    assert names == [GateName.PAUSE, GateName.CONCURRENCY]


async def test_fifo_ordering_through_policy_enforcer(
    bench: Bench, enforcer: PolicyEnforcer
) -> None:
    await bench.policy(concurrency_limit=1)
    ids = [(await bench.ask())[0] for _ in range(4)]
    for one in ids:
        assert await bench.running() == [one]
        assert await enforcer.enforce("a.one")
        await bench.end(one)
    assert await enforcer.enforce("a.one") == []


async def test_without_any_policy_nothing_waits(bench: Bench, enforcer: PolicyEnforcer) -> None:
    """The specification's legacy behaviour: no queue manager, no queue."""
    ids = await bench.ask(count=20)
    assert await bench.running() == ids
    assert await enforcer.enforce("a.one") == []


async def test_queue_timeout_handling(bench: Bench) -> None:
    await bench.set(queue_timeout_seconds=1)
    await bench.policy(concurrency_limit=1)
    first, second = await bench.ask(count=2)
    bench.step(1)
    assert await bench.flow.expire() == 1
    assert (await bench.error(second))[0] is S.TIMEOUT
    assert await bench.running() == [first]
