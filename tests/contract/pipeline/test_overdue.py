"""Attempts whose worker does not begin or end them in time, and work of workers that are gone."""

from datetime import timedelta
from typing import Any

import pytest

from attune.bus.dead_letters import DeadLetter
from attune.bus.outcome import Reason
from attune.catalog.retrying import Retry
from attune.catalog.steps.actions import ActionChanges, update_action
from attune.kernel.envelope import Stamp, encode
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionScheduled, MessageType
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion.model import Ended, LostWorker
from attune.pipeline.executions.model import Request
from attune.pipeline.processors.dead_letter_handler import DeadLetterHandler
from attune.pipeline.workers.history import WorkerEvent
from tests.contract.pipeline.bench import Bench

S = ExecutionStatus
LEASE = 300


async def ask(bench: Bench, most: int = 0, count: int = 1, **fields: Any) -> list[ExecutionId]:
    request = Request(action_ref="a.one", max_retries=most, **fields)
    return [one.id for one in await bench.order([request] * count)]


async def events(bench: Bench) -> list[tuple[str, int | None]]:
    names = await bench.values(str, "SELECT event FROM worker_history ORDER BY at, id")
    ids = await bench.values(
        int, "SELECT coalesce(execution, 0) FROM worker_history ORDER BY at, id"
    )
    return [(n, i or None) for n, i in zip(names, ids, strict=True) if n != "registered"]


async def lost(bench: Bench, execution: ExecutionId) -> LostWorker:
    worker = (await bench.execution(execution)).worker
    name = await bench.value(str, "SELECT name FROM worker WHERE id = :id", id=worker)
    return LostWorker(WorkerId(worker or 0), name, cordoned=False)


class TestNotBegun:
    async def test_f17_what_no_worker_begins_within_its_lease_fails_and_says_so(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench)
        bench.step(LEASE - 1)
        assert await bench.flow.fail_unbegun() == 0
        bench.step(1)
        assert await bench.flow.fail_unbegun() == 1
        now = await bench.execution(one)
        assert now.status is S.FAILED
        assert now.result is not None
        assert now.result["error"] == (
            "Execution timeout: worker did not pick up task within timeout"
        )
        assert now.result["failed_by"] == "execution_timeout_monitor"
        assert await events(bench) == [("not_started", one)]
        assert await bench.flow.fail_unbegun() == 0

    async def test_f20_what_has_begun_is_left_alone_however_late_the_monitor_looks(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench)
        bench.step(LEASE - 1)
        await bench.start(one)
        bench.step(10 * LEASE)
        assert await bench.flow.fail_unbegun() == 0
        assert (await bench.execution(one)).status is S.RUNNING

    async def test_f20_one_that_begins_while_the_monitor_decides_is_left_alone(
        self, bench: Bench
    ) -> None:
        """The monitor has found it overdue; before it writes, the worker's word is committed."""
        [one] = await ask(bench)
        bench.step(LEASE)
        found = {one: 1}
        await bench.start(one)
        assert await bench.flow.fail_expired(found) == 0
        assert (await bench.execution(one)).status is S.RUNNING

    async def test_its_slot_goes_to_the_next_in_line(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, count=2)
        bench.step(LEASE)
        await bench.flow.fail_unbegun()
        assert await bench.running() == ids[1:]

    async def test_with_retries_left_it_goes_to_another_worker(self, bench: Bench) -> None:
        await bench.come("other", 10)
        [one] = await ask(bench, 1)
        first = (await bench.execution(one)).worker
        bench.step(LEASE)
        await bench.flow.fail_unbegun()
        now = await bench.execution(one)
        assert (now.status, now.attempt) == (S.SCHEDULED, 2)
        assert now.worker != first

    async def test_the_worker_that_comes_late_changes_nothing(self, bench: Bench) -> None:
        [one] = await ask(bench)
        word = await bench.word(one, S.COMPLETED, bench.clock.now())
        bench.step(LEASE)
        await bench.flow.fail_unbegun()
        assert (await bench.complete(word)).late == {one}
        assert (await bench.execution(one)).status is S.FAILED


def letter(bench: Bench, execution: ExecutionId, attempt: int, reason: Reason) -> DeadLetter:
    item = ExecutionScheduled(execution_id=execution, worker_id=WorkerId(1), attempt=attempt)
    stamp = Stamp("test", bench.clock, bench.ids)
    return DeadLetter(
        queue="attune.execution.worker.1",
        reason=reason,
        error="",
        died_at=bench.clock.now(),
        body=encode(stamp.envelope(MessageType.EXECUTION_SCHEDULED, item)),
    )


class TestDeadLetters:
    async def test_a_hand_off_that_expired_unread_fails_the_execution(self, bench: Bench) -> None:
        [one] = await ask(bench)
        bench.step(LEASE)
        handler = DeadLetterHandler(bench.flow)
        for _ in range(2):
            await handler.handle(letter(bench, one, 1, Reason.EXPIRED))
        now = await bench.execution(one)
        assert now.status is S.FAILED
        assert now.result is not None
        assert now.result["error"] == "Message expired in worker queue (worker unavailable)"
        assert now.result["failed_by"] == "dead_letter_handler"

    @pytest.mark.parametrize(
        ("attempt", "reason", "seconds"),
        [(2, Reason.EXPIRED, LEASE), (1, Reason.REJECTED, LEASE), (1, Reason.EXPIRED, LEASE - 1)],
    )
    async def test_another_attempt_s_letter_a_rejected_one_and_one_within_its_lease_change_nothing(
        self, bench: Bench, attempt: int, reason: Reason, seconds: float
    ) -> None:
        [one] = await ask(bench)
        bench.step(seconds)
        await DeadLetterHandler(bench.flow).handle(letter(bench, one, attempt, reason))
        assert (await bench.execution(one)).status is S.SCHEDULED

    async def test_a_letter_that_cannot_be_read_changes_nothing(self, bench: Bench) -> None:
        dead = DeadLetter(
            queue="attune.execution.worker.1",
            reason=Reason.EXPIRED,
            error="",
            died_at=bench.clock.now(),
            body=b"\xff",
        )
        await DeadLetterHandler(bench.flow).handle(dead)


class TestNotEnded:
    async def test_what_its_worker_does_not_end_in_time_ends_as_timed_out(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench, timeout_seconds=10)
        await bench.start(one)
        bench.step(39)
        assert await bench.flow.fail_unended() == 0
        bench.step(1)
        assert await bench.flow.fail_unended() == 1
        status, error = await bench.error(one)
        assert (status, "timed out after 10 s" in error) == (S.TIMEOUT, True)
        assert await events(bench) == [("overdue", one)]

    async def test_without_a_limit_it_may_run_for_ever(self, bench: Bench) -> None:
        [one] = await ask(bench)
        await bench.start(one)
        bench.step(10**7)
        assert await bench.flow.fail_unended() == 0

    async def test_one_that_is_to_be_cancelled_ends_too_and_is_not_tried_again(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench, 3, timeout_seconds=10)
        await bench.start(one)
        await bench.flow.cancel(one)
        bench.step(40)
        assert await bench.flow.fail_unended() == 1
        assert (await bench.execution(one)).status is S.TIMEOUT


class TestLostWorkers:
    async def test_f18_what_ran_is_abandoned_and_its_slot_goes_on(self, bench: Bench) -> None:
        await bench.policy(concurrency_limit=1)
        ids = await ask(bench, count=2)
        await bench.start(ids[0])
        await bench.flow.take_back(await lost(bench, ids[0]), "was lost")
        now = await bench.execution(ids[0])
        assert now.status is S.ABANDONED
        assert now.result is not None
        assert now.result["original_status"] == "running"
        assert await bench.running() == ids[1:]
        assert ("abandoned", ids[0]) in await events(bench)

    async def test_with_a_retry_left_it_goes_on_elsewhere_and_the_lost_attempt_is_on_record(
        self, bench: Bench
    ) -> None:
        [one] = await ask(bench, 1)
        await bench.start(one)
        await bench.come("other", 10)
        first = await lost(bench, one)
        await bench.flow.take_back(first, "was lost")
        now = await bench.execution(one)
        assert (now.status, now.attempt) == (S.SCHEDULED, 2)
        assert now.worker != first.id
        causes = await bench.values(str, "SELECT cause FROM execution_attempt")
        assert causes == ["worker_lost"]
        await bench.start(one)
        await bench.flow.take_back(await lost(bench, one), "was lost")
        assert (await bench.execution(one)).status is S.ABANDONED

    async def test_an_action_that_must_not_run_twice_is_abandoned_even_unseen(
        self, bench: Bench
    ) -> None:
        changes = ActionChanges(on_worker_lost="fail")
        await bench.database.run(update_action, "a.one", changes, bench.clock.now())
        [one] = await ask(bench, 5)
        await bench.flow.take_back(await lost(bench, one), "was lost")
        assert (await bench.execution(one)).status is S.ABANDONED

    async def test_a_start_that_nobody_saw_costs_no_retry(self, bench: Bench) -> None:
        [one] = await ask(bench, 1)
        await bench.flow.take_back(await lost(bench, one), "was lost")
        await bench.start(one)
        await bench.flow.take_back(await lost(bench, one), "was lost")
        now = await bench.execution(one)
        assert (now.status, now.attempt) == (S.SCHEDULED, 3)

    async def test_one_that_takes_every_worker_down_unseen_is_given_up(self, bench: Bench) -> None:
        [one] = await ask(bench)
        for _ in range(5):
            await bench.flow.take_back(await lost(bench, one), "was lost")
            assert (await bench.execution(one)).status is S.SCHEDULED
        await bench.flow.take_back(await lost(bench, one), "was lost")
        assert (await bench.execution(one)).status is S.ABANDONED

    async def test_a_worker_hands_back_what_it_has_not_begun_and_no_attempt_counts(
        self, bench: Bench
    ) -> None:
        ids = await ask(bench, count=2)
        await bench.start(ids[1])
        worker = (await lost(bench, ids[0])).id
        assert await bench.flow.hand_back(worker, ids) == 1
        now = await bench.execution(ids[0])
        assert (now.status, now.attempt) == (S.SCHEDULED, 2)
        assert await bench.values(int, "SELECT losses + retries FROM entry") == [0, 0]
        assert (await bench.execution(ids[1])).status is S.RUNNING

    async def test_f19_a_worker_that_was_only_paused_changes_nothing(self, bench: Bench) -> None:
        [one] = await ask(bench, 1)
        await bench.start(one)
        word: Ended = await bench.word(one, S.COMPLETED, bench.clock.now())
        await bench.flow.take_back(await lost(bench, one), "was lost")
        assert (await bench.complete(word)).late == {one}
        assert (await bench.execution(one)).status is S.SCHEDULED

    async def test_a_worker_that_stops_gracefully_keeps_what_it_runs(self, bench: Bench) -> None:
        [one] = await ask(bench)
        await bench.start(one)
        await bench.execute("UPDATE worker SET status = 'inactive'")
        assert await bench.flow.take_back_from_silent() == 0
        assert (await bench.execution(one)).status is S.RUNNING


async def test_delays_and_retries_of_overdue_attempts_follow_the_same_rule(bench: Bench) -> None:
    [one] = await ask(bench, 1, retry=Retry(delay=60))
    bench.step(LEASE)
    await bench.flow.fail_unbegun()
    due = await bench.flow.release_delayed()
    assert due == bench.clock.now() + timedelta(seconds=60)
    assert (await bench.execution(one)).attempt == 2
    assert WorkerEvent.NOT_STARTED in {name for name, _ in await events(bench)}
