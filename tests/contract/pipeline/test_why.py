"""What an execution is told about its wait: every gate that is closed, who holds the slots, what must happen next."""

from datetime import timedelta

import pytest

from attune.kernel.errors import NotFound
from attune.pipeline.executions.model import Request
from attune.pipeline.policies.model import GateName
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.whys import blackout, gates, names, why

G = GateName


class TestTheFirstBlocker:
    async def test_under_a_limit_it_is_concurrency_with_those_who_hold_the_slots(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=2)
        a, b, c, d = await bench.ask(count=4)
        head = await why(bench, c)
        assert (head.waiting, head.position, head.first_blocker) == (True, 1, G.CONCURRENCY)
        [gate] = head.blockers
        assert (gate.policy_ref, gate.limit, gate.holders) == ("a.policy", 2, (a, b))
        assert gate.text == "2 of at most 2 hold a slot"
        assert head.next == (
            f"one of the 2 executions that hold a slot of a.one must end: {a}, {b}"
        )
        second = await why(bench, d)
        assert (second.position, second.first_blocker) == (2, G.CONCURRENCY)
        assert names(second.blockers) == [G.CONCURRENCY, G.TURN]
        assert second.next == f"{head.next}; one other goes before it"

    async def test_a_limit_that_was_lowered_says_how_many_must_end(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=3)
        ids = await bench.ask(count=4)
        await bench.change(concurrency_limit=1)
        found = await why(bench, ids[3])
        assert found.next is not None
        assert found.next.startswith("3 of the 3 executions that hold a slot of a.one must end")
        await bench.change(concurrency_limit=0)
        found = await why(bench, ids[3])
        assert found.next == "somebody must raise the limit of the policy a.policy, which is 0"
        assert found.estimate is None

    async def test_in_a_paused_queue_it_is_pause(self, bench: Bench) -> None:
        await bench.flow.pause("a.one", None, "olga")
        first, second = await bench.ask(count=2)
        found = await why(bench, first)
        assert (found.first_blocker, names(found.blockers)) == (G.PAUSE, [G.PAUSE])
        assert found.next == "somebody must resume the queue of a.one"
        assert found.estimate is None
        assert await gates(bench, second) == [G.PAUSE, G.TURN]
        await bench.flow.resume("a.one", None, "olga")
        assert (await why(bench, first)).waiting is False

    async def test_in_a_blackout_it_is_window_and_it_says_when_it_opens(self, bench: Bench) -> None:
        await bench.policy(blackouts=blackout(bench, 600))
        [one] = await bench.ask()
        found = await why(bench, one)
        [gate] = found.blockers
        opens = bench.clock.now() + timedelta(seconds=600)
        assert (gate.name, gate.until, gate.policy_ref) == (G.WINDOW, opens, "a.policy")
        assert found.next == "the policy a.policy opens at 2026-01-01T00:10:00Z"
        assert found.estimate is not None
        assert (found.estimate.p50_seconds, found.estimate.p90_seconds) == (600, 600)

    async def test_a_quota_of_one_identity_names_what_it_runs_in_every_queue(
        self, bench: Bench
    ) -> None:
        quota = {"quota_type": "running_executions", "limit": 1, "per": "identity"}
        await bench.policy(over="a", quotas=[quota])
        [holds] = await bench.ask("a.one", executor=7)
        [other] = await bench.ask("a.one", executor=8)
        [waits_for_it] = await bench.ask("a.two", executor=7)
        assert (await why(bench, other)).waiting is False
        found = await why(bench, waits_for_it)
        [gate] = found.blockers
        assert (gate.name, gate.limit, gate.holders) == (G.QUOTA, 1, (holds,))
        assert found.next is not None
        assert found.next.endswith(f"that holds a slot of the policy a.policy must end: {holds}")

    async def test_a_limit_over_a_pack_names_holders_of_its_other_queues(
        self, bench: Bench
    ) -> None:
        await bench.policy(over="a", concurrency_limit=2)
        [one] = await bench.ask("a.one")
        [two] = await bench.ask("a.two")
        [third] = await bench.ask("a.one")
        found = await why(bench, third)
        [gate] = found.blockers
        assert (gate.name, gate.holders) == (G.CONCURRENCY, (one, two))
        assert found.position == 1

    async def test_under_a_rate_it_says_when_the_next_may_start(self, bench: Bench) -> None:
        await bench.policy(rate_limit={"max_executions": 2, "window_seconds": 60})
        a, b, c = await bench.ask(count=3)
        found = await why(bench, c)
        assert found.first_blocker is G.RATE_LIMIT
        assert found.blockers[0].holders == (a, b)
        assert found.next is not None
        assert "must begin" in found.next
        await bench.start(a)
        bench.step(10)
        await bench.start(b)
        found = await why(bench, c)
        opens = bench.clock.now() + timedelta(seconds=50)
        assert (found.blockers[0].until, found.blockers[0].holders) == (opens, ())
        assert found.next == (
            "the rate of the policy a.policy lets the next one start at 2026-01-01T00:01:00Z"
        )
        assert found.estimate is not None
        assert found.estimate.p50_seconds == 50

    async def test_a_gate_that_has_just_opened_leaves_only_the_next_pass(
        self, bench: Bench
    ) -> None:
        await bench.policy(blackouts=blackout(bench, 60))
        first, second = await bench.ask(count=2)
        bench.step(61)
        found = await why(bench, first)
        assert (found.first_blocker, found.position) == (G.TURN, 1)
        assert found.next == "an executor gives it its slot in the next pass"
        behind = (await why(bench, second)).blockers[0].text
        assert behind == "one other of its queue must get a slot before it"
        await bench.flow.open_gates()
        assert (await why(bench, second)).waiting is False

    async def test_two_that_are_closed_are_listed_in_order(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        first, second = await bench.ask(count=2)
        await bench.change(blackouts=blackout(bench, 60))
        assert await gates(bench, second) == [G.WINDOW, G.CONCURRENCY]
        await bench.flow.pause("a.one", None, "olga")
        assert await gates(bench, second) == [G.PAUSE, G.WINDOW, G.CONCURRENCY]
        assert (await why(bench, first)).waiting is False


class TestAtTheWorkers:
    async def test_the_cap_of_the_whole_system_names_what_workers_have(self, bench: Bench) -> None:
        await bench.set(max_concurrent_executions=1)
        [runs] = await bench.ask("b.one")
        first, second = await bench.ask("a.one", 2)
        found = await why(bench, first)
        [gate] = found.blockers
        assert (gate.name, gate.limit, gate.holders) == (G.SYSTEM_CAP, 1, (runs,))
        assert found.next == f"the one execution that workers have must end: {runs}"
        assert names((await why(bench, second)).blockers) == [G.SYSTEM_CAP, G.TURN]
        await bench.set(max_concurrent_executions=0)
        found = await why(bench, first)
        assert found.next == "somebody must raise max_concurrent_executions, which is 0"

    async def test_workers_that_are_full_are_told_with_what_they_have(self, bench: Bench) -> None:
        await bench.execute("UPDATE worker SET capacity = 2")
        a, b, c, d = await bench.ask("b.one", 4)
        found = await why(bench, c)
        [gate] = found.blockers
        assert (found.position, gate.name, gate.limit) == (1, G.WORKER, 2)
        assert gate.text == "1 worker can run it, with 2 of at most 2"
        assert gate.holders == (a, b)
        assert found.next == (
            "a worker must get free:"
            f" one of the 2 executions that such workers have must end: {a}, {b}"
        )
        behind = await why(bench, d)
        assert (behind.position, names(behind.blockers)) == (2, [G.WORKER, G.TURN])
        assert behind.blockers[1].text == "one other with a slot must get a worker before it"

    async def test_where_nobody_can_run_it_the_missing_worker_is_described(
        self, bench: Bench
    ) -> None:
        api = bench.new_flow("api", through=False)
        wanted = Request(action_ref="a.one", worker_selector={"zone": "north"})
        [one] = await bench.order([wanted], api)
        found = await why(bench, one.id)
        assert (found.first_blocker, found.estimate) == (G.WORKER, None)
        assert found.blockers[0].text == ("a worker with label zone=north is not there (1 active)")
        assert found.next == "a worker with label zone=north must come"

    async def test_one_that_waits_for_a_slot_learns_of_missing_workers_too(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        [_, waits_on] = await bench.ask(count=2)
        await bench.execute("UPDATE worker SET cordoned = true")
        assert await gates(bench, waits_on) == [G.CONCURRENCY, G.WORKER]
        found = await why(bench, waits_on)
        assert (found.first_blocker, found.estimate) == (G.CONCURRENCY, None)

    async def test_with_a_free_worker_it_is_only_the_next_pass(self, bench: Bench) -> None:
        api = bench.new_flow("api", through=False)
        first, second = await bench.ask("b.one", 2, flow=api)
        found = await why(bench, first)
        assert (found.first_blocker, found.next) == (
            G.TURN,
            "an executor gives it a worker in the next pass",
        )
        assert (await why(bench, second)).position == 2

    async def test_what_a_worker_has_does_not_wait_and_it_is_told_who_has_it(
        self, bench: Bench
    ) -> None:
        [one] = await bench.ask()
        found = await why(bench, one)
        assert (found.waiting, found.position, found.first_blocker) == (False, None, None)
        assert found.next == "the worker hand, which has it, must begin it"
        await bench.start(one)
        assert (await why(bench, one)).next == "the worker hand must bring it to its end"
        await bench.end(one)
        over = await why(bench, one)
        assert (over.waiting, over.next, over.blockers) == (False, None, ())


async def test_one_that_there_is_not_is_unknown(bench: Bench) -> None:
    with pytest.raises(NotFound):
        await why(bench, 404)
