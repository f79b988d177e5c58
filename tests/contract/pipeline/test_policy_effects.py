"""Which policy binds an execution, and what its limit, its method and its groups do."""

import pytest

from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority, Request
from tests.contract.pipeline.bench import Bench

S = ExecutionStatus


class TestPrecedence:
    async def test_the_action_goes_before_its_pack_and_that_before_everything(
        self, bench: Bench
    ) -> None:
        await bench.policy("a.all", over=None, concurrency_limit=1, priority=9)
        await bench.policy("a.pack", over="a", concurrency_limit=2, priority=5)
        await bench.policy("a.action", over="a.one", concurrency_limit=3)
        for ref in ("a.one", "a.two", "b.one"):
            await bench.ask(ref, 5)
        held = [len(await bench.running(ref)) for ref in ("a.one", "a.two", "b.one")]
        assert held == [3, 2, 1]

    async def test_of_one_scope_the_higher_priority_binds_and_then_the_older(
        self, bench: Bench
    ) -> None:
        await bench.policy("a.older", concurrency_limit=1, priority=2)
        await bench.policy("a.younger", concurrency_limit=2, priority=2)
        await bench.policy("a.lower", concurrency_limit=3, priority=1)
        await bench.ask(count=4)
        assert len(await bench.running()) == 1
        await bench.change("a.lower", priority=3)
        assert len(await bench.running()) == 3

    async def test_a_disabled_policy_binds_nobody(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, enabled=False)
        await bench.ask(count=3)
        assert len(await bench.running()) == 3

    async def test_f10_of_two_policies_on_one_action_each_binds_when_the_other_is_gone(
        self, bench: Bench
    ) -> None:
        await bench.policy("a.first", concurrency_limit=1, priority=1)
        await bench.policy("a.second", concurrency_limit=2)
        ids = await bench.ask(count=4)
        assert await bench.running() == ids[:1]
        await bench.drop("a.first")
        assert await bench.running() == ids[:2]
        await bench.drop("a.second")
        assert await bench.running() == ids


class TestMethodCancel:
    async def test_what_the_limit_has_no_room_for_ends_at_once_and_names_the_policy(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=2, concurrency_method="cancel")
        answer = await bench.order([Request(action_ref="a.one")] * 5)
        assert [one.status for one in answer] == [S.REQUESTED] * 2 + [S.CANCELLED] * 3
        status, text = await bench.error(answer[4].id)
        assert status is S.CANCELLED
        assert "'a.policy'" in text
        assert "2 of at most 2" in text
        assert await bench.waiting() == []

    async def test_once_a_slot_is_free_the_next_one_is_taken(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_method="cancel")
        [first] = await bench.ask()
        [second] = await bench.ask()
        assert (await bench.error(second))[0] is S.CANCELLED
        await bench.end(first)
        [third] = await bench.ask()
        assert await bench.running() == [third]

    async def test_the_higher_band_of_one_order_is_the_one_that_stays(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_method="cancel")
        low, high = await bench.order(
            Request(action_ref="a.one", priority=word) for word in (Priority.LOW, Priority.HIGH)
        )
        assert (low.status, high.status) == (S.CANCELLED, S.REQUESTED)
        assert await bench.running() == [high.id]

    async def test_while_the_queue_is_paused_everybody_waits(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_method="cancel")
        await bench.flow.pause("a.one", None, "eva")
        ids = await bench.ask(count=3)
        assert await bench.waiting() == ids
        await bench.flow.resume("a.one", None, "eva")
        assert (await bench.running(), await bench.waiting()) == (ids[:1], ids[1:])

    async def test_a_limit_of_zero_turns_everybody_away_and_says_so(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=0, concurrency_method="cancel")
        [only] = await bench.ask()
        status, text = await bench.error(only)
        assert (status, "the limit is 0" in text) == (S.CANCELLED, True)

    async def test_a_large_order_is_not_refused_for_a_queue_that_nobody_would_join(
        self, bench: Bench
    ) -> None:
        await bench.set(max_queue_length=1)
        await bench.policy(concurrency_limit=2, concurrency_method="cancel")
        answer = await bench.order([Request(action_ref="a.one")] * 6)
        assert [one.status for one in answer].count(S.CANCELLED) == 4

    async def test_over_a_pack_the_limit_counts_all_of_its_actions(self, bench: Bench) -> None:
        await bench.policy(over="a", concurrency_limit=1, concurrency_method="cancel")
        [first] = await bench.ask("a.one")
        [second] = await bench.ask("a.two")
        assert (await bench.error(second))[0] is S.CANCELLED
        assert await bench.running() == [first]


class TestGroups:
    async def test_each_value_has_a_lane_a_limit_and_an_order_of_its_own(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        red = await bench.ask(count=3, customer="red")
        blue = await bench.ask(count=2, customer="blue")
        none = await bench.ask(count=2)
        assert set(await bench.running()) == {red[0], blue[0], none[0]}
        await bench.end(red[0])
        assert set(await bench.running()) == {red[1], blue[0], none[0]}
        keys = {lane.group_key for lane in await bench.lanes() if lane.group_key}
        assert keys == {'{"customer":"red"}', '{"customer":"blue"}', '{"customer":null}'}

    async def test_f9_a_blocked_group_slows_nobody(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        blocked = await bench.ask(count=50, customer="red")
        for number in range(20):
            [other] = await bench.ask(customer=f"customer {number}")
            assert other in await bench.running()
        assert await bench.waiting() == blocked[1:]

    @pytest.mark.parametrize(
        "values",
        [{"order": {"lines": [{"sku": "x" * 200}]}}, {"customer": "c" * 5000}],
    )
    async def test_a_long_value_stands_in_the_key_as_a_digest(
        self, bench: Bench, values: dict[str, object]
    ) -> None:
        [name] = values
        await bench.policy(concurrency_limit=1, concurrency_parameters=[name])
        same = await bench.ask(count=2, **values)  # type: ignore[arg-type]
        assert (await bench.running(), await bench.waiting()) == (same[:1], same[1:])
        assert len((await bench.lane()).group_key) < 100

    async def test_a_nested_value_is_one_group_whatever_the_order_of_its_names(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["order"])
        first = await bench.ask(order={"a": 1, "b": [2]})
        second = await bench.ask(order={"b": [2], "a": 1})
        assert (await bench.running(), await bench.waiting()) == (first, second)

    async def test_the_value_of_a_secret_parameter_stands_in_no_lane(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["pin"])
        same = await bench.ask(count=2, pin="4711")
        [other] = await bench.ask(pin="4712")
        assert set(await bench.running()) == {same[0], other}
        for table in ("lane", "pool", "decision", "entry"):
            rows = await bench.values(str, f"SELECT CAST({_ALL[table]} AS text) FROM {table}")
            assert not [row for row in rows if "4711" in row or "4712" in row]


_ALL = {
    "lane": "action_ref || group_key || coalesce(CAST(terms AS text), '')",
    "pool": "key",
    "decision": "items",
    "entry": "coalesce(reason, '')",
}
