"""Quotas: how many run at once, how many are ever accepted, of all or of each identity."""

from typing import Any

import pytest

from attune.kernel.errors import Limited
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.world import World, eventually

S = ExecutionStatus


def running(limit: int, **fields: Any) -> dict[str, Any]:
    return {"quota_type": "running_executions", "limit": limit, **fields}


def total(limit: int, **fields: Any) -> dict[str, Any]:
    return {"quota_type": "executions_total", "limit": limit, **fields}


class TestRunning:
    async def test_no_more_than_the_quota_run_at_once_and_the_others_say_why(
        self, bench: Bench
    ) -> None:
        await bench.policy(over="a", quotas=[running(2)])
        ones, twos = await bench.ask("a.one", 2), await bench.ask("a.two", 2)
        assert await bench.running() == ones
        assert (await bench.lane("a.two")).reason == "quota"
        await bench.end(ones[0])
        assert await bench.running() == [ones[1], twos[0]]

    async def test_the_full_quota_of_one_identity_does_not_hold_another(self, bench: Bench) -> None:
        await bench.policy(quotas=[running(1, per="identity")])
        seven = await bench.ask(count=3, executor=7)
        eight = await bench.ask(count=2, executor=8)
        nobody = await bench.ask(count=2)
        assert await bench.running() == [seven[0], eight[0], nobody[0]]
        await bench.end(eight[0])
        assert await bench.running() == [seven[0], eight[1], nobody[0]]

    async def test_the_quota_of_an_identity_counts_over_all_actions_of_a_pack(
        self, bench: Bench
    ) -> None:
        await bench.policy(over="a", quotas=[running(1, per="identity")])
        first = await bench.ask("a.one", executor=7)
        second = await bench.ask("a.two", executor=7)
        other = await bench.ask("a.two", executor=8)
        assert await bench.running() == [*first, *other]
        await bench.end(*first)
        assert await bench.running() == [*second, *other]

    async def test_a_limit_over_all_and_a_quota_of_each_hold_together(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=3, quotas=[running(2, per="identity")])
        seven = await bench.ask(count=3, executor=7)
        eight = await bench.ask(count=3, executor=8)
        assert await bench.running() == [*seven[:2], eight[0]]
        await bench.end(seven[0])
        assert len(await bench.running()) == 3
        reasons = {lane.reason for lane in await bench.lanes() if lane.queue_length}
        assert reasons == {"concurrency"}


class TestTotal:
    async def test_once_it_is_used_up_an_order_is_refused_whole(self, bench: Bench) -> None:
        await bench.policy(quotas=[total(3)])
        await bench.ask(count=2)
        with pytest.raises(Limited, match=r"quota executions_total .* used up: 2 of 3") as refused:
            await bench.ask(count=2)
        assert refused.value.fields["policy_ref"] == "a.policy"
        await bench.end(*await bench.running())
        [third] = await bench.ask()
        with pytest.raises(Limited, match="quota"):
            await bench.ask()
        assert await bench.running() == [third]
        assert await bench.value(int, "SELECT count(*) FROM execution") == 3

    async def test_an_order_over_two_actions_that_share_it_is_refused_whole(
        self, bench: Bench
    ) -> None:
        await bench.policy(over="a", quotas=[total(5)])
        some = [Request(action_ref=ref) for ref in ("a.one", "a.two") * 3]
        with pytest.raises(Limited, match="quota"):
            await bench.order(some)
        assert await bench.value(int, "SELECT count(*) FROM execution") == 0
        await bench.order(some[:5])
        with pytest.raises(Limited, match="quota"):
            await bench.ask("a.two")

    async def test_what_one_identity_has_used_up_is_nothing_to_another(self, bench: Bench) -> None:
        await bench.policy(quotas=[total(1, per="identity")])
        await bench.ask(executor=7)
        with pytest.raises(Limited, match="quota"):
            await bench.ask(executor=7)
        await bench.ask(executor=8)
        with pytest.raises(Limited, match="quota"):
            await bench.ask(executor=8)

    async def test_a_higher_quota_lets_more_in_and_a_new_policy_begins_anew(
        self, bench: Bench
    ) -> None:
        await bench.policy(quotas=[total(1)])
        await bench.ask()
        await bench.change(quotas=[total(2)])
        await bench.ask()
        with pytest.raises(Limited, match="2 of 2"):
            await bench.ask()
        await bench.drop()
        await bench.policy(quotas=[total(1)])
        await bench.ask()
        with pytest.raises(Limited, match="1 of 1"):
            await bench.ask()
        assert len(await bench.running()) == 3

    async def test_what_a_rule_asks_for_beyond_it_ends_as_failed_with_that_reason(
        self, proved: World
    ) -> None:
        await proved.policy("core.one", over="core.echo", quotas=[total(1)])
        await proved.rule(action_params={"message": "hi"})
        for _ in range(2):
            await proved.emit()

        async def ended() -> list[int] | None:
            sql = "SELECT id FROM execution WHERE status IN ('completed', 'failed') ORDER BY id"
            found = await proved.values(int, sql)
            return found if len(found) == 2 else None

        first, second = [await proved.execution(one) for one in await eventually(ended)]
        assert (first.status, second.status) == (S.COMPLETED, S.FAILED)
        assert second.result is not None
        assert "quota executions_total of the policy 'core.one'" in second.result["error"]


class TestFullQueue:
    async def test_it_refuses_and_names_queue_length_and_limit(self, bench: Bench) -> None:
        await bench.set(max_queue_length=2)
        await bench.policy(concurrency_limit=1)
        await bench.ask(count=3)
        with pytest.raises(
            Limited, match=r"Queue full \(max length: 2\): 2 wait .* a\.one"
        ) as full:
            await bench.ask()
        found = full.value.fields
        assert (found["queue"], found["length"], found["limit"]) == ("a.one", 2, 2)
        assert found["retry_after"]

    async def test_an_order_that_does_not_fit_is_refused_whole_and_one_that_does_is_taken(
        self, bench: Bench
    ) -> None:
        await bench.set(max_queue_length=2)
        await bench.policy(concurrency_limit=1)
        with pytest.raises(Limited):
            await bench.ask(count=4)
        assert await bench.value(int, "SELECT count(*) FROM execution") == 0
        ids = await bench.ask(count=3)
        assert await bench.waiting() == ids[1:]

    async def test_a_repeated_order_leads_to_the_first_also_when_the_queue_is_full(
        self, bench: Bench
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

    async def test_a_group_that_is_full_refuses_nobody_else(self, bench: Bench) -> None:
        await bench.set(max_queue_length=1)
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        await bench.ask(count=2, customer="red")
        with pytest.raises(Limited, match="red"):
            await bench.ask(customer="red")
        await bench.ask(count=2, customer="blue")

    async def test_a_larger_setting_takes_effect_at_once(self, bench: Bench) -> None:
        await bench.set(max_queue_length=1)
        await bench.policy(concurrency_limit=0)
        await bench.ask()
        with pytest.raises(Limited):
            await bench.ask()
        await bench.set(max_queue_length=3)
        await bench.ask(count=2)
        assert len(await bench.waiting()) == 3

    async def test_what_a_rule_asks_for_beyond_it_ends_as_failed_with_that_reason(
        self, still: World
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
