"""Attempts of one execution: after which errors there is another, when, where it stands, and what is left on record."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from attune.catalog.retrying import Cause, Retry
from attune.kernel.errors import Conflict
from attune.kernel.ids import ExecutionId
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import PastAttempt
from attune.pipeline.executions.model import Priority, Request
from tests.contract.pipeline.bench import Bench

S = ExecutionStatus
ATTEMPTS = f"SELECT {', '.join(PastAttempt.__struct_fields__)} FROM execution_attempt ORDER BY execution, attempt"


async def ask(bench: Bench, count: int = 1, *, most: int = 1, **how: Any) -> list[ExecutionId]:
    request = Request(action_ref="a.one", max_retries=most, retry=Retry(**how))
    return [one.id for one in await bench.order([request] * count)]


async def fail(bench: Bench, *ids: ExecutionId, **result: Any) -> None:
    for one in ids:
        word = await bench.word(one, S.FAILED, bench.clock.now())
        await bench.complete(msgspec.structs.replace(word, result=msgspec.json.encode(result)))
        await bench.flow.schedule()  # as the message does that a failure sends


async def attempts(bench: Bench) -> Sequence[PastAttempt]:
    return await bench.values(PastAttempt, ATTEMPTS)


class TestWhen:
    async def test_a_failed_attempt_is_followed_by_another_after_its_delay(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench, delay=30)
        await bench.start(one)
        await fail(bench, one, error="no route", exit_code=7)
        now = await bench.execution(one)
        assert (now.status, now.attempt, now.result, now.started_at) == (S.REQUESTED, 2, None, None)
        assert await bench.running() == []
        due = await bench.flow.release_delayed()
        assert due == bench.clock.now() + timedelta(seconds=30)
        bench.step(29.9)
        await bench.flow.release_delayed()
        assert await bench.running() == []
        bench.step(0.1)
        assert await bench.flow.release_delayed() is None
        assert (await bench.execution(one)).status is S.SCHEDULED
        await bench.end(one)
        assert (await bench.execution(one)).status is S.COMPLETED

    async def test_without_a_delay_it_goes_on_at_once(self, bench: Bench) -> None:
        [one] = await ask(bench)
        await fail(bench, one)
        now = await bench.execution(one)
        assert (now.status, now.attempt) == (S.SCHEDULED, 2)

    async def test_the_last_attempt_s_failure_is_the_execution_s(self, bench: Bench) -> None:
        [one] = await ask(bench, most=2)
        for text in ("first", "second", "third"):
            await fail(bench, one, error=text)
        assert await bench.error(one) == (S.FAILED, "third")
        assert (await bench.execution(one)).attempt == 3
        assert [(e.attempt, e.error) for e in await attempts(bench)] == [
            (1, "first"),
            (2, "second"),
        ]

    async def test_what_an_attempt_was_stays_on_record(self, bench: Bench) -> None:
        [one] = await ask(bench, delay=5)
        began = bench.clock.now()
        await bench.start(one)
        bench.step(3)
        word = await bench.word(one, S.TIMEOUT, began)
        await bench.complete(msgspec.structs.replace(word, result=b'{"error":"timed out"}'))
        [past] = await attempts(bench)
        worker = await bench.value(int, "SELECT id FROM worker")
        assert past == PastAttempt(
            execution=one,
            attempt=1,
            worker=worker,
            status=S.TIMEOUT,
            cause=Cause.TIMEOUT,
            error="timed out",
            started_at=began,
            ended_at=bench.clock.now(),
        )

    @pytest.mark.parametrize(
        ("how", "result", "again"),
        [
            ({"exit_codes": (75,)}, {"exit_code": 75}, True),
            ({"exit_codes": (75,)}, {"exit_code": 1}, False),
            ({"matching": ("connection (refused|reset)",)}, {"error": "connection reset"}, True),
            ({"matching": ("connection (refused|reset)",)}, {"error": "no such user"}, False),
            ({"matching": ("reset",), "exit_codes": (3,)}, {"error": "x", "exit_code": 3}, True),
            ({"on": (Cause.TIMEOUT,)}, {"error": "x"}, False),
            ({"on": (Cause.FAILED,)}, {"error": "x"}, True),
        ],
    )
    async def test_only_after_the_chosen_errors(
        self, bench: Bench, how: dict[str, Any], result: dict[str, Any], again: bool
    ) -> None:
        [one] = await ask(bench, delay=1, **how)
        await fail(bench, one, **result)
        assert (await bench.execution(one)).status is (S.REQUESTED if again else S.FAILED)

    async def test_one_that_is_cancelled_is_not_tried_again(self, bench: Bench) -> None:
        [one] = await ask(bench)
        await bench.start(one)
        await bench.flow.cancel(one)
        await fail(bench, one)
        assert (await bench.execution(one)).status is S.FAILED


class TestWhere:
    async def test_while_it_rests_others_have_the_slot_and_then_it_stands_where_it_stood(
        self, bench: Bench
    ) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 3, delay=10)
        await fail(bench, ids[0])
        assert (await bench.running(), await bench.waiting()) == (ids[1:2], ids[2:])
        bench.step(10)
        await bench.flow.release_delayed()
        assert await bench.waiting() == [ids[0], ids[2]]
        await bench.end(ids[1])
        assert await bench.running() == [ids[0]]

    async def test_by_the_rule_tail_it_stands_behind_all_others(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 3, delay=10, queue_place="tail")
        await fail(bench, ids[0])
        bench.step(10)
        await bench.flow.release_delayed()
        assert await bench.waiting() == [ids[2], ids[0]]

    @pytest.mark.parametrize(("place", "next_one"), [("keep", 0), ("tail", 1)])
    async def test_without_a_delay_the_rule_decides_who_gets_the_slot(
        self, bench: Bench, place: str, next_one: int
    ) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 3, queue_place=place)
        await fail(bench, ids[0])
        assert await bench.running() == [ids[next_one]]

    async def test_counters_count_executions_and_not_attempts(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 2, delay=10)
        await fail(bench, ids[0])
        lane = await bench.lane()
        assert (lane.total_enqueued, lane.total_completed) == (2, 0)
        bench.step(10)
        await bench.flow.release_delayed()
        await bench.end(ids[1])
        await bench.flow.schedule()
        await bench.end(ids[0])
        lane = await bench.lane()
        assert (lane.total_enqueued, lane.total_completed, lane.active_count) == (2, 2, 0)

    async def test_it_goes_to_another_worker_first(self, bench: Bench) -> None:
        await bench.come("other", 10)
        [one] = await ask(bench, most=2)
        first = (await bench.execution(one)).worker
        await fail(bench, one)
        second = (await bench.execution(one)).worker
        assert second not in (first, None)
        await fail(bench, one)
        assert (await bench.execution(one)).worker in (first, second)

    async def test_a_rate_counts_every_start(self, bench: Bench) -> None:
        await bench.policy(rate_limit={"max_executions": 1, "window_seconds": 60})
        [one] = await ask(bench)
        await bench.start(one)
        await fail(bench, one)
        assert await bench.waiting() == [one]
        bench.step(61)
        await bench.flow.open_gates()
        assert await bench.running() == [one]

    async def test_after_a_change_of_groups_it_comes_back_to_its_group_s_lane(
        self, bench: Bench
    ) -> None:
        request = Request(
            action_ref="a.one",
            parameters={"customer": "red"},
            max_retries=1,
            retry=Retry(delay=10),
        )
        [one] = await bench.order([request])
        await fail(bench, one.id)
        await bench.policy(concurrency_limit=1, concurrency_parameters=["customer"])
        bench.step(10)
        await bench.flow.release_delayed()
        assert await bench.running() == [one.id]
        assert (await bench.lane(group='{"customer":"red"}')).active_count == 1


class TestWhileItRests:
    async def test_it_can_be_cancelled(self, bench: Bench) -> None:
        [one] = await ask(bench, delay=60)
        await fail(bench, one)
        assert (await bench.flow.cancel(one)).status is S.CANCELLED
        bench.step(60)
        assert await bench.flow.release_delayed() is None
        with pytest.raises(Conflict):
            await bench.flow.cancel(one)

    async def test_clearing_its_queue_ends_it(self, bench: Bench) -> None:
        [one] = await ask(bench, delay=60)
        await fail(bench, one)
        assert await bench.flow.clear("a.one", None, "eva") == 1
        assert await bench.error(one) == (S.CANCELLED, "The queue was cleared by eva.")

    async def test_a_paused_queue_holds_it_when_it_is_due(self, bench: Bench) -> None:
        [one] = await ask(bench, delay=5)
        await fail(bench, one)
        await bench.flow.pause("a.one", None, "eva")
        bench.step(5)
        await bench.flow.release_delayed()
        assert await bench.waiting() == [one]
        await bench.flow.resume("a.one", None, "eva")
        assert await bench.running() == [one]

    async def test_its_priority_can_be_raised(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, 3, delay=5, queue_place="tail")
        await fail(bench, ids[0])
        await bench.flow.reprioritize(ids[0], Priority.CRITICAL, "eva")
        bench.step(5)
        await bench.flow.release_delayed()
        assert await bench.waiting() == [ids[0], ids[2]]

    async def test_an_old_attempt_s_word_changes_nothing(self, bench: Bench) -> None:
        [one] = await ask(bench, delay=5)
        word = await bench.word(one, S.COMPLETED, bench.clock.now())
        await fail(bench, one)
        assert (await bench.complete(word)).late == {one}
        assert (await bench.execution(one)).status is S.REQUESTED

    async def test_a_queue_timeout_counts_from_when_it_was_due(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        await bench.set(queue_timeout_seconds=100)
        ids = await ask(bench, 2, delay=500)
        await fail(bench, ids[0])
        bench.step(500)
        await bench.flow.release_delayed()
        assert await bench.waiting() == [ids[0]]
        bench.step(99)
        assert await bench.flow.expire() == 0
        bench.step(2)
        assert await bench.flow.expire() == 1
        assert (await bench.execution(ids[0])).status is S.TIMEOUT
