"""Quotas: how many run at once, how many are ever accepted, of all or of each identity."""

from typing import Any

import pytest

from attune.kernel.errors import Limited
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Request
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

    async def test_a_quota_of_each_that_comes_later_counts_what_each_has_already(
        self, bench: Bench
    ) -> None:
        seven = await bench.ask(count=2, executor=7)
        await bench.policy(quotas=[running(1, per="identity")])
        more = await bench.ask(executor=7)
        eight = await bench.ask(executor=8)
        assert await bench.running() == [*seven, *eight]
        await bench.end(seven[0])
        assert await bench.waiting() == more
        await bench.end(seven[1])
        assert await bench.running() == [*more, *eight]


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
