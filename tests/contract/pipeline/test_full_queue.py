"""A queue takes max_queue_length waiters; whoever comes then is refused, and told which queue, how long and how many."""

import pytest

from attune.kernel.errors import Limited
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World


async def test_it_refuses_and_names_queue_length_and_limit(bench: Bench) -> None:
    await bench.set(max_queue_length=2)
    await bench.policy(concurrency_limit=1)
    await bench.ask(count=3)
    with pytest.raises(Limited, match=r"Queue full \(max length: 2\): 2 wait .* a\.one") as full:
        await bench.ask()
    found = full.value.fields
    assert (found["queue"], found["length"], found["limit"]) == ("a.one", 2, 2)
    assert found["retry_after"]


async def test_an_order_that_does_not_fit_is_refused_whole_and_one_that_does_is_taken(
    bench: Bench,
) -> None:
    await bench.set(max_queue_length=2)
    await bench.policy(concurrency_limit=1)
    with pytest.raises(Limited):
        await bench.ask(count=4)
    assert await bench.value(int, "SELECT count(*) FROM execution") == 0
    ids = await bench.ask(count=3)
    assert await bench.waiting() == ids[1:]


@pytest.mark.parametrize(
    ("longest", "limit", "counts"),
    [(2, 0, (1, 2, 1, 1)), (130, 10, (60, 100, 80, 1))],
    ids=["small", "large, written before the queue is asked"],
)
async def test_an_order_that_is_refused_harms_no_other_of_the_same_commit(
    bench: Bench, longest: int, limit: int, counts: tuple[int, ...]
) -> None:
    await bench.set(max_queue_length=longest)
    await bench.policy(concurrency_limit=limit)
    request = Request(action_ref="a.one")
    flow = bench.new_flow("api", through=False)
    first, large, second, late = await flow._request([Order((request,) * n) for n in counts])
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert isinstance(large, Limited)
    assert isinstance(late, Limited)
    ids = [one.id for one in (*first, *second)]
    assert await bench.value(int, "SELECT count(*) FROM execution") == len(ids)
    assert await bench.waiting() == ids[limit:]


async def test_a_repeated_order_leads_to_the_first_also_when_the_queue_is_full(
    bench: Bench,
) -> None:
    await bench.set(max_queue_length=1)
    await bench.policy(concurrency_limit=0)
    request = Request(action_ref="a.one", idempotency_key="once")
    flow = bench.new_flow("api", through=False)
    answers = await flow._request([Order((request,)), Order((request,))])
    assert isinstance(answers[0], list)
    assert answers[1] == answers[0]
    [again] = await bench.order([request])
    assert again.id == answers[0][0].id
    with pytest.raises(Limited):
        await bench.ask()


async def test_a_group_that_is_full_refuses_nobody_else(bench: Bench) -> None:
    await bench.set(max_queue_length=1)
    await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
    await bench.ask(count=2, customer="red")
    with pytest.raises(Limited, match="red"):
        await bench.ask(customer="red")
    await bench.ask(count=2, customer="blue")


async def test_a_larger_setting_takes_effect_at_once(bench: Bench) -> None:
    await bench.set(max_queue_length=1)
    await bench.policy(concurrency_limit=0)
    await bench.ask()
    with pytest.raises(Limited):
        await bench.ask()
    await bench.set(max_queue_length=3)
    await bench.ask(count=2)
    assert len(await bench.waiting()) == 3


async def test_what_a_rule_asks_for_beyond_it_ends_as_failed_with_that_reason(
    still: World,
) -> None:
    await still.execute(
        "INSERT INTO setting (name, value, updated) VALUES ('max_queue_length', '1', :now)",
        now=still.clock.now(),
    )
    await still.policy("core.none", over="core.echo", concurrency_limit=0)
    await still.rule(action_params={"message": "hi"})
    for _ in range(2):
        await still.emit()
    failed = "SELECT id FROM execution WHERE status = 'failed'"
    ended = await still.execution(await still.value(int, failed))
    assert ended.result is not None
    assert "Queue full (max length: 1)" in ended.result["error"]
    assert await still.value(int, "SELECT count(*) FROM entry") == 1
