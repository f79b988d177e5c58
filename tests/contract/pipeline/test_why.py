"""What an execution is told about its wait: every gate that is closed, who holds the slots, what must happen next."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from attune.kernel.errors import NotFound
from attune.kernel.ids import ExecutionId, IdentityId, LaneId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.policies.book import PolicyBook
from attune.pipeline.policies.model import Gate, GateName
from attune.pipeline.queues.ahead import queued_ahead
from attune.pipeline.queues.enforcer import PolicyEnforcer
from attune.pipeline.queues.looking import lane_view
from attune.pipeline.queues.model import Waiter
from attune.pipeline.queues.places import places
from attune.pipeline.why.model import History, Why
from attune.pipeline.why.steps import Explainer
from attune.store.database import Tx
from tests.contract.pipeline.bench import Bench

G = GateName
S = ExecutionStatus


async def why(bench: Bench, execution: int) -> Why:
    explainer = Explainer(bench.flow.terms, bench.flow.definitions)
    return await bench.database.read(explainer.why, ExecutionId(execution), bench.clock.now())


async def told_history(bench: Bench, execution: int) -> History:
    explainer = Explainer(bench.flow.terms, bench.flow.definitions)
    return await bench.database.read(explainer.history, ExecutionId(execution), bench.clock.now())


async def gates(bench: Bench, execution: int) -> list[GateName]:
    return [each.name for each in (await why(bench, execution)).blockers]


async def waits(bench: Bench, execution: int) -> list[tuple[GateName, float, float | None]]:
    """Reason, and from when to when, in seconds since the test began."""
    begin = bench.clock.manual._start
    return [
        (
            one.reason,
            (one.since - begin).total_seconds(),
            None if one.until is None else (one.until - begin).total_seconds(),
        )
        for one in (await why(bench, execution)).history
    ]


def enforcer(bench: Bench) -> PolicyEnforcer:
    return PolicyEnforcer(bench.database, PolicyBook(), bench.flow.terms.queue, bench.clock)


def names(found: Sequence[Gate]) -> list[GateName]:
    return [each.name for each in found]


def blackout(bench: Bench, seconds: float) -> list[dict[str, str]]:
    """One that began an hour ago and ends in so many seconds."""
    now = bench.clock.now()
    begin, end = now - timedelta(hours=1), now + timedelta(seconds=seconds)
    return [{"from": begin.isoformat(), "to": end.isoformat()}]


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


class TestPositions:
    async def test_they_follow_bands_and_then_age_behind_those_with_a_slot(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        api = bench.new_flow("api", through=False)
        [ready] = await bench.ask(flow=api)
        [low] = await bench.ask(priority=Priority.LOW, flow=api)
        bench.step(10)
        normal, next_normal = await bench.ask(count=2, flow=api)
        [high] = await bench.ask(priority=Priority.HIGH, flow=api)
        in_order = [ready, high, normal, next_normal, low]
        assert [(await why(bench, one)).position for one in in_order] == [1, 2, 3, 4, 5]
        await bench.set(ageing_seconds=4)
        [critical] = await bench.ask(priority=Priority.CRITICAL, flow=api)
        aged = [ready, critical, low, high, normal, next_normal]
        assert [(await why(bench, one)).position for one in aged] == [1, 2, 3, 4, 5, 6]

    async def test_each_group_has_its_own_slots_and_positions(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        x1, x2, x3 = await bench.ask(count=3, customer="x")
        y1, y2 = await bench.ask(count=2, customer="y")
        assert (await why(bench, x3)).position == 2
        found = await why(bench, y2)
        assert (found.position, found.blockers[0].holders) == (1, (y1,))
        assert found.next == (
            f'the one execution that holds a slot of a.one {{"customer":"y"}} must end: {y1}'
        )
        assert (await why(bench, x2)).blockers[0].holders == (x1,)

    async def test_a_long_queue_is_counted_from_its_nearer_end(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=0)
        ids = await bench.ask(count=20)
        await bench.ask(count=2, priority=Priority.LOW)
        lane = LaneId((await bench.lane()).id)

        async def place(tx: Tx, number: int) -> int | None:
            view = await lane_view(tx, lane, bench.clock.now())
            sql = "SELECT execution, band, sequence, enqueued_at FROM entry WHERE execution = :id"
            one = await tx.one(Waiter, sql, id=ids[number])
            return await queued_ahead(tx, view.lane, one, most=6)

        places = [await bench.database.read(place, number) for number in range(20)]
        assert places[:6] == [0, 1, 2, 3, 4, 5]
        assert places[6:15] == [None] * 9
        assert places[15:] == [15, 16, 17, 18, 19]


class TestTheEstimate:
    async def test_it_comes_from_recent_run_times_and_those_ahead(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        past = await bench.ask(count=5)
        for one in past:
            await bench.end(one, seconds=20)
        runs, first, second = await bench.ask(count=3)
        await bench.start(runs)
        bench.step(5)
        found = [(await why(bench, one)).estimate for one in (first, second)]
        assert [each and (each.p50_seconds, each.p90_seconds) for each in found] == [
            (15, 15), (35, 35),
        ]  # fmt: skip

    async def test_before_anything_ran_nothing_is_said(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        [_, waits_on] = await bench.ask(count=2)
        assert (await why(bench, waits_on)).estimate is None


class TestTheHistory:
    async def test_it_goes_from_pause_to_concurrency_to_worker_to_the_end(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        api = bench.new_flow("api", through=False)
        await bench.flow.pause("a.one", None, "olga")
        first, second = await bench.ask(count=2)
        bench.step(10)
        assert await waits(bench, second) == [(G.PAUSE, 0, None)]
        await bench.flow.resume("a.one", None, "olga")
        bench.step(20)
        assert await waits(bench, first) == [(G.PAUSE, 0, 10)]
        assert await waits(bench, second) == [(G.PAUSE, 0, 10), (G.CONCURRENCY, 10, None)]
        await bench.execute("UPDATE worker SET capacity = 0")
        await bench.end(first, flow=api)
        bench.step(5)
        so_far = [(G.PAUSE, 0, 10), (G.CONCURRENCY, 10, 30)]
        assert await waits(bench, second) == [*so_far, (G.WORKER, 30, None)]
        await bench.execute("UPDATE worker SET capacity = 9")
        await bench.flow.schedule()
        bench.step(1)
        assert await waits(bench, second) == [*so_far, (G.WORKER, 30, 35)]
        await bench.start(second)
        await bench.end(second, seconds=0)
        bench.step(3600)
        assert await waits(bench, second) == [*so_far, (G.WORKER, 30, 36)]
        found = await told_history(bench, second)
        assert [each.status for each in found.statuses] == [S.REQUESTED, S.RUNNING, S.COMPLETED]
        assert list(found.waits) == list((await why(bench, second)).history)

    async def test_one_that_was_cancelled_in_the_queue_waited_until_then(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        [_, waiting] = await bench.ask(count=2)
        bench.step(7)
        await bench.flow.cancel(waiting)
        bench.step(7)
        assert await waits(bench, waiting) == [(G.CONCURRENCY, 0, 7)]
        found = await told_history(bench, waiting)
        assert [each.status for each in found.statuses] == [S.REQUESTED, S.CANCELLED]

    async def test_it_goes_on_in_the_queue_to_which_a_policy_moved_it(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        [first] = await bench.ask(customer="x")
        [second] = await bench.ask(customer="y")
        [third] = await bench.ask(customer="x")
        bench.step(10)
        await bench.change(concurrency_parameters=["customer"])
        bench.step(5)
        assert await waits(bench, second) == [(G.CONCURRENCY, 0, 10)]
        assert await waits(bench, third) == [(G.CONCURRENCY, 0, None)]
        await bench.end(first, seconds=None)
        assert await waits(bench, third) == [(G.CONCURRENCY, 0, 15)]

    async def test_a_change_of_priority_does_not_interrupt_it(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        [_, second] = await bench.ask(count=2)
        bench.step(3)
        await bench.flow.reprioritize(second, Priority.HIGH, "olga")
        bench.step(3)
        assert await waits(bench, second) == [(G.CONCURRENCY, 0, None)]

    async def test_work_taken_back_waits_for_a_worker_since_then(self, bench: Bench) -> None:
        [one] = await bench.ask()
        bench.step(100)
        await bench.execute("UPDATE worker SET status = 'inactive'")
        api = bench.new_flow("api", through=False)
        await api.take_back_from_silent()
        bench.step(5)
        assert await waits(bench, one) == [(G.WORKER, 100, None)]

    async def test_a_wait_of_which_the_log_knows_nothing_still_has_its_reason(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        first, second = await bench.ask(count=2)
        await bench.execute("DELETE FROM decision")
        bench.step(5)
        assert await waits(bench, second) == [(G.CONCURRENCY, 0, None)]
        assert await waits(bench, first) == []


class TestTheEnforcer:
    async def test_the_limit_is_that_of_the_one_policy_in_effect(self, bench: Bench) -> None:
        found = enforcer(bench)
        assert await found.get_concurrency_limit("a.one") is None
        await bench.policy("a.all", over=None, concurrency_limit=1, priority=9)
        await bench.policy("a.pack", over="a", concurrency_limit=2)
        await bench.policy("a.action", over="a.one", concurrency_limit=3)
        limits = [await found.get_concurrency_limit(ref) for ref in ("a.one", "a.two", "b.one")]
        assert limits == [3, 2, 1]

    async def test_a_limit_that_follows_the_action_is_told_as_it_is_now(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit="auto", concurrency_floor=2, concurrency_ceiling=9)
        assert await enforcer(bench).get_concurrency_limit("a.one") == 2
        await bench.ask()
        await bench.flow.change_limit(LaneId((await bench.lane()).id), 5, "it is fast")
        assert await enforcer(bench).get_concurrency_limit("a.one") == 5

    async def test_everything_but_concurrency_is_checked_in_order(self, bench: Bench) -> None:
        found = enforcer(bench)
        assert await found.check_policies_except_concurrency("a.one") is None
        await bench.policy(
            concurrency_limit=1, rate_limit={"max_executions": 2, "window_seconds": 9}
        )
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

    async def test_a_quota_that_is_used_up_is_a_violation(self, bench: Bench) -> None:
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

    async def test_parameters_choose_the_group_and_a_pack_shares_its_limit(
        self, bench: Bench
    ) -> None:
        await bench.policy(over="a", concurrency_limit=1, concurrency_parameters=["customer"])
        await bench.ask("a.one", customer="x")
        found = enforcer(bench)
        assert names(await found.enforce("a.two", {"customer": "x"})) == [G.CONCURRENCY]
        assert await found.enforce("a.two", {"customer": "y"}) == []

    async def test_a_full_queue_has_no_room_behind_it(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=0)
        await bench.set(max_queue_length=2)
        await bench.ask(count=2)
        found = await enforcer(bench).enforce("a.one")
        assert names(found) == [G.CONCURRENCY, G.TURN]
        assert found[1].text == "the queue is full: 2 of at most 2 wait in it"


async def test_asking_does_not_even_clear_the_past_starts_of_a_rate(bench: Bench) -> None:
    await bench.policy(concurrency_limit=1, rate_limit={"max_executions": 1, "window_seconds": 5})
    first, second = await bench.ask(count=2)
    await bench.end(first)
    bench.step(60)
    starts = "SELECT count(*) FROM admission"
    assert await bench.value(int, starts) == 1
    assert (await why(bench, second)).first_blocker is G.TURN
    assert names(await enforcer(bench).enforce("a.one")) == [G.TURN]
    assert await bench.value(int, starts) == 1


async def test_one_that_there_is_not_is_unknown(bench: Bench) -> None:
    with pytest.raises(NotFound):
        await why(bench, 404)


class Scenario:
    """Anything that may happen to queues, in any order."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench = bench
        self.chance = random.Random(seed)
        self.api = bench.new_flow("api", through=False)

    async def act(self) -> None:
        deeds = [self.ask, self.ask, self.ask, self.end, self.start, self.switch]
        deeds += [self.change, self.settings, self.workers, self.time]
        await self.chance.choice(deeds)()

    async def ask(self) -> None:
        await self.bench.ask(
            self.chance.choice(["a.one", "a.two", "b.one"]),
            self.chance.randint(1, 3),
            executor=self.chance.choice([7, 8, None]),
            priority=self.chance.choice(list(Priority)),
            flow=self.chance.choice([self.api, self.bench.flow]),
            customer=self.chance.choice(["x", "y"]),
        )

    async def start(self) -> None:
        if handed := await self.handed("x.status = 'scheduled'"):
            await self.bench.start(self.chance.choice(handed))

    async def end(self) -> None:
        if handed := await self.handed("true"):
            seconds = self.chance.choice([None, 1, 2])
            await self.bench.end(self.chance.choice(handed), seconds=seconds)

    async def handed(self, condition: str) -> list[ExecutionId]:
        sql = "SELECT e.execution FROM entry e JOIN execution x ON x.id = e.execution"
        return await self.bench.values(
            ExecutionId, f"{sql} WHERE e.state = 'handed' AND {condition} ORDER BY 1"
        )

    async def switch(self) -> None:
        turn = self.chance.choice([self.bench.flow.pause, self.bench.flow.resume])
        await turn(self.chance.choice(["a.one", "a.two"]), None, "olga")

    async def change(self) -> None:
        limit = self.chance.choice([0, 1, 2, 3])
        quota = {"quota_type": "running_executions", "limit": 1, "per": "identity"}
        fields: list[dict[str, Any]] = [
            {"over": "a.one"},
            {"over": "a"},
            {"concurrency_parameters": self.chance.choice([[], ["customer"]])},
            {"quotas": self.chance.choice([[], [quota]])},
            {"blackouts": self.chance.choice([[], blackout(self.bench, 30)])},
            {"rate_limit": {"max_executions": 2, "window_seconds": 20}},
        ]
        await self.bench.change(concurrency_limit=limit, **self.chance.choice(fields))

    async def settings(self) -> None:
        await self.bench.set(
            max_concurrent_executions=self.chance.choice([None, 1, 4]),
            ageing_seconds=self.chance.choice([None, 5]),
        )

    async def workers(self) -> None:
        await self.bench.execute(
            "UPDATE worker SET capacity = :n", n=self.chance.choice([1, 3, 99])
        )

    async def time(self) -> None:
        self.bench.step(self.chance.uniform(0, 20))
        if self.chance.random() < 0.5:
            await self.bench.flow.open_gates()


async def listed(bench: Bench) -> dict[ExecutionId, int | None]:
    """The positions that the lists of the queues show."""
    found: dict[ExecutionId, int | None] = {}
    for ref in ("a.one", "a.two", "b.one"):
        page = await bench.database.read(places, ref, None, None, 10_000, 0)
        found |= {one.execution: one.position for one in page.items}
    return found


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_nobody_ever_waits_without_a_reason(bench: Bench, seed: int) -> None:
    await bench.policy(concurrency_limit=1)
    scenario = Scenario(bench, seed)
    told = 0
    for _ in range(12):
        for _ in range(5):
            await scenario.act()
        for execution, position in (await listed(bench)).items():
            found = await why(bench, execution)
            assert (found.waiting, found.position) == (True, position)
            assert found.first_blocker is not None
            assert all(gate.is_closed and gate.text for gate in found.blockers)
            assert found.next
            assert found.history[-1].until is None
            told += 1
        for execution in await scenario.handed("true"):
            assert (await why(bench, execution)).waiting is False
    assert told > 50
