"""Whatever becomes of attempts, in whatever order: counters are counts, everyone has one place and a reason, and all end."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from attune.catalog.retrying import Cause, Retry
from attune.kernel.configuration import load_settings
from attune.kernel.errors import Conflict, Limited
from attune.kernel.ids import ExecutionId, IdentityId
from attune.kernel.statuses import TERMINAL, ExecutionStatus
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.workers.steps import cordon, uncordon
from tests.contract.pipeline.attempts import WITH_A_WORKER, Attempt, AttemptBench

S = ExecutionStatus
LEASE: Final = 300
ACTIONS: Final = ("a.one", "a.two", "b.one")
EACH: Final = {"quota_type": "running_executions", "limit": 1, "per": "identity"}
ALL: Final = {"quota_type": "executions_total", "limit": 40}
RATE: Final = {"max_executions": 2, "window_seconds": 20}
PLAIN: Final[dict[str, Any]] = {
    "concurrency_limit": None,
    "concurrency_parameters": [],
    "quotas": [],
    "rate_limit": None,
}
POLICIES: Final[Sequence[dict[str, Any]]] = (
    {"over": "a.one", "concurrency_limit": 1},
    {"over": "a.one", "concurrency_limit": 2, "concurrency_parameters": ["customer"]},
    {"over": "a", "concurrency_limit": 2},
    {"over": "a", "concurrency_limit": 1, "concurrency_parameters": ["customer"]},
    {"over": "a", "quotas": [EACH, ALL]},
    {"over": "a.one", "rate_limit": RATE},
    {"over": "a", "rate_limit": RATE, "concurrency_limit": 1},
    {
        "over": None,
        "concurrency_limit": 3,
        "concurrency_parameters": ["customer"],
        "quotas": [EACH],
    },
    {"over": "b", "concurrency_limit": 1},
)

REFS = st.sampled_from([*ACTIONS, "a.one", "a.one"])
CUSTOMERS = st.sampled_from(["red", "blue"])
ANYONE = st.integers(0, 30)
RETRIES = st.builds(
    Retry,
    delay=st.sampled_from([0, 5, 30]),
    backoff=st.sampled_from(["constant", "exponential"]),
    jitter=st.sampled_from([0, 0.5]),
    on=st.sampled_from([tuple(Cause), (Cause.FAILED,), (Cause.TIMEOUT, Cause.WORKER_LOST)]),
    queue_place=st.sampled_from(["keep", "tail"]),
)
BAD = st.sampled_from([S.FAILED, S.FAILED, S.TIMEOUT])


class AttemptMachine(RuleBasedStateMachine):
    """`seen` are all executions that were asked for."""

    def __init__(self, bench: AttemptBench, runner: asyncio.Runner) -> None:
        super().__init__()
        self.bench = bench
        self.run = runner.run
        self.seen: list[ExecutionId] = []
        self.api = bench.new_flow("api", through=False)
        self.watcher = bench.new_flow("watcher", through=True, stale=timedelta(hours=1))

    @property
    def flow(self) -> Any:
        return self.bench.flow

    @initialize(policy=st.sampled_from(POLICIES), how=RETRIES)
    def set_up(self, policy: dict[str, Any], how: Retry) -> None:
        """Some are there from the beginning, so that something can happen."""
        self.run(self.bench.empty())
        self.run(self.bench.come("hand", 4))
        self.run(self.bench.policy(**{**PLAIN, **policy}))
        for customer in ("red", "blue"):
            self.ask("a.one", 2, customer, None, Priority.NORMAL, 2, how, 10.0, True)

    @rule(
        ref=REFS,
        count=st.integers(1, 3),
        customer=CUSTOMERS,
        executor=st.sampled_from([None, 7]),
        priority=st.sampled_from(list(Priority)),
        most=st.integers(0, 3),
        how=RETRIES,
        limit=st.sampled_from([None, 10.0]),
        through=st.booleans(),
    )
    def ask(
        self,
        ref: str,
        count: int,
        customer: str,
        executor: int | None,
        priority: Priority,
        most: int,
        how: Retry,
        limit: float | None,
        through: bool,
    ) -> None:
        request = Request(
            action_ref=ref,
            parameters={"customer": customer},
            executor=None if executor is None else IdentityId(executor),
            priority=priority,
            max_retries=most,
            retry=how,
            timeout_seconds=limit,
        )
        with suppress(Limited):
            flow = self.flow if through else self.api
            made = self.run(self.bench.order([request] * count, flow))
            self.seen += [one.id for one in made]

    @rule(number=ANYONE)
    def start(self, number: int) -> None:
        """Of any attempt that a worker ever had."""
        if one := self.attempt(number):
            before = self.run(self.bench.standing())[one.execution]
            counts = (before.attempt, before.status) == (one.attempt, S.SCHEDULED)
            assert self.run(self.bench.begin(one)) == counts

    @rule(number=ANYONE, began=st.booleans())
    def end_well(self, number: int, began: bool) -> None:
        self.say(number, S.COMPLETED, began)

    @rule(number=ANYONE, status=BAD, began=st.booleans())
    def end_badly(self, number: int, status: ExecutionStatus, began: bool) -> None:
        self.say(number, status, began)

    @rule(number=ANYONE, status=BAD, began=st.booleans())
    def end_badly_again(self, number: int, status: ExecutionStatus, began: bool) -> None:
        self.say(number, status, began)

    @rule(number=ANYONE)
    def end_cancelled(self, number: int) -> None:
        one = self.attempt(number)
        if one and self.run(self.bench.standing())[one.execution].status is S.CANCELING:
            self.say(number, S.CANCELLED, began=False)

    def say(self, number: int, status: ExecutionStatus, began: bool) -> None:
        """A word that counts is believed once; any other ends nothing, and makes nobody begin anew."""
        one = self.attempt(number)
        if one is None:
            return
        before = self.run(self.bench.standing())[one.execution]
        done = self.run(self.bench.say(one, status, began=began))
        after = self.run(self.bench.standing())[one.execution]
        if (before.attempt, before.status in WITH_A_WORKER) == (one.attempt, True):
            assert not done.late
            assert after != before
        else:
            assert done.late == {one.execution}
            assert (after.attempt, after.recorded) == (before.attempt, before.recorded)
            assert after.result == before.result
        self.run(self.flow.schedule())

    def attempt(self, number: int) -> Attempt | None:
        """The later ones first, so that small numbers are those that live."""
        found = list(self.bench.attempts.values())[::-1]
        return found[number % len(found)] if found else None

    def somebody(self, number: int) -> ExecutionId | None:
        return self.seen[-1 - number % len(self.seen)] if self.seen else None

    @rule(number=ANYONE)
    def cancel(self, number: int) -> None:
        if (one := self.somebody(number)) is None:
            return
        before = self.run(self.bench.standing())[one]
        if before.status in TERMINAL:
            with pytest.raises(Conflict):
                self.run(self.flow.cancel(one))
            return
        after = self.run(self.flow.cancel(one))
        assert after.status is (S.CANCELING if before.status in WITH_A_WORKER else S.CANCELLED)

    @rule(ref=REFS, paused=st.booleans())
    def switch(self, ref: str, paused: bool) -> None:
        self.run((self.flow.pause if paused else self.flow.resume)(ref, None, "eva"))

    @rule(ref=REFS)
    def clear(self, ref: str) -> None:
        """Nobody who waits or rests is left."""
        self.run(self.flow.clear(ref, None, "eva"))
        left = "SELECT count(*) FROM delay d JOIN execution x ON x.id = d.execution"
        assert self.run(self.bench.value(int, f"{left} WHERE x.action_ref = :ref", ref=ref)) == 0
        assert self.run(self.bench.waiting(ref)) == []

    @rule(policy=st.sampled_from(POLICIES))
    def change(self, policy: dict[str, Any]) -> None:
        self.run(self.bench.change(**{**PLAIN, **policy}))

    @rule(number=ANYONE, priority=st.sampled_from(list(Priority)))
    def reprioritize(self, number: int, priority: Priority) -> None:
        if (one := self.somebody(number)) is None:
            return
        if self.run(self.bench.standing())[one].status in {S.REQUESTED, S.SCHEDULING}:
            self.run(self.flow.reprioritize(one, priority, "eva"))
            return
        with pytest.raises(Conflict):
            self.run(self.flow.reprioritize(one, priority, "eva"))

    @rule()
    def expire(self) -> None:
        self.run(self.bench.set(queue_timeout_seconds=100))
        self.run(self.flow.expire())

    @rule(seconds=st.sampled_from([1, 5, 40]))
    def wait(self, seconds: int) -> None:
        self.bench.step(seconds)

    @rule(seconds=st.sampled_from([0, LEASE]))
    def end_what_no_worker_began(self, seconds: int) -> None:
        self.bench.step(seconds)
        self.run(self.flow.fail_unbegun())

    @rule(seconds=st.sampled_from([0, 40]))
    def end_what_no_worker_ended(self, seconds: int) -> None:
        self.bench.step(seconds)
        self.run(self.flow.fail_unended())

    @rule(number=ANYONE)
    def dead_letter(self, number: int) -> None:
        if one := self.attempt(number):
            before = self.run(self.bench.standing())[one.execution]
            ended = self.run(self.flow.fail_expired({one.execution: one.attempt}))
            counts = (before.attempt, before.status) == (one.attempt, S.SCHEDULED)
            assert ended <= counts

    @rule()
    def release(self) -> None:
        due = self.run(self.flow.release_delayed())
        assert due is None or due > self.bench.clock.now()

    @rule()
    def look(self) -> None:
        self.run(self.flow.open_gates())
        self.run(self.flow.promote())

    @rule(number=ANYONE)
    def lose_worker(self, number: int) -> None:
        workers = self.run(self.bench.workers())
        self.run(self.bench.lose(workers[number % len(workers)]))

    @rule()
    def lose_the_silent(self) -> None:
        self.bench.step(3600)
        self.run(self.watcher.take_back_from_silent())
        assert self.run(self.bench.handed()) == []
        self.run(self.bench.come("hand", 4))

    @rule(number=ANYONE, some=st.integers(1, 3))
    def hand_back(self, number: int, some: int) -> None:
        """Also what it has begun, and what it never had: these stay as they are."""
        if (one := self.attempt(number)) is None:
            return
        before = self.run(self.bench.standing())
        ids = [one.execution, *self.seen[:some]]
        given = {
            each
            for each in ids
            if before[each].status is S.SCHEDULED and before[each].worker == one.worker
        }
        assert self.run(self.flow.hand_back(one.worker, ids)) == len(given)
        for each in given:
            self.bench.given_back[each] = self.bench.given_back.get(each, 0) + 1

    @rule(name=st.sampled_from(["hand", "other"]), capacity=st.sampled_from([0, 1, 4]))
    def come(self, name: str, capacity: int) -> None:
        self.run(self.bench.come(name, capacity))
        self.run(self.flow.schedule())

    @rule(number=ANYONE, cordoned=st.booleans())
    def cordon(self, number: int, cordoned: bool) -> None:
        workers, now = self.run(self.bench.workers()), self.bench.clock.now()
        worker = workers[number % len(workers)]
        if cordoned:
            self.run(self.bench.database.run(cordon, worker, "a test", None, now))
        else:
            self.run(self.bench.database.run(uncordon, worker, now))
            self.run(self.flow.schedule())

    @invariant()
    def holds(self) -> None:
        self.run(self.bench.check())

    def teardown(self) -> None:
        """Whatever happened: with workers and nobody in the way all come to an end, and nothing is held."""
        self.run(self.bring_to_an_end())

    async def bring_to_an_end(self) -> None:
        bench = self.bench
        for ref in ACTIONS:
            await bench.flow.resume(ref, None, "eva")
        for worker in await bench.workers():
            await bench.database.run(uncordon, worker, bench.clock.now())
        await bench.come("hand", 4)
        for _ in range(len(self.seen) * 4 + 10):
            due = await bench.flow.release_delayed()
            await bench.flow.open_gates()
            await bench.flow.promote()
            for one in await bench.handed():
                await bench.say(one, S.COMPLETED, began=True)
            bench.step(max((due - bench.clock.now()).total_seconds(), 10) if due else 10)
        await bench.check()
        assert {one.status for one in (await bench.standing()).values()} <= TERMINAL
        # A rate that comes into effect adopts what others left.
        await bench.change(**{**PLAIN, "over": "a", "rate_limit": RATE})
        assert await bench.value(int, "SELECT count(*) FROM admission WHERE at IS NULL") == 0
        lanes = [
            (e.queue_length, e.active_count) for ref in ACTIONS for e in await bench.lanes(ref)
        ]
        assert set(lanes) <= {(0, 0)}
        totals = "SELECT sum(total_enqueued) - sum(total_completed) FROM lane"
        assert not await bench.value(int, totals)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=["sqlite", "postgresql"])
def closed_bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AttemptBench:
    environ = {"ATTUNE__DATA_DIR": str(tmp_path_factory.mktemp("attempts"))}
    if request.param == "postgresql":
        environ["ATTUNE__DATABASE__URL"] = request.getfixturevalue("bench_url")
    return AttemptBench(load_settings(environ))


def test_attempts_have_one_place_a_reason_and_an_end_whatever_happens(
    closed_bench: AttemptBench, runner: asyncio.Runner
) -> None:
    class Machine(AttemptMachine):
        def __init__(self) -> None:
            super().__init__(closed_bench, runner)

    runner.run(closed_bench.__aenter__())
    # To make a failure smaller takes longer than a test may; its steps are told as they were.
    options: dict[str, Any] = {"deadline": None, "database": None, "phases": [Phase.generate]}
    try:
        run_state_machine_as_test(
            Machine, settings=settings(max_examples=12, stateful_step_count=40, **options)
        )
    finally:
        runner.run(closed_bench.__aexit__())
