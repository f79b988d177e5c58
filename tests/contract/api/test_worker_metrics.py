"""What Prometheus reads of workers and attempts: each thing once, whatever a scrape falls between."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from attune.api.worker_metrics import WorkerMetrics
from attune.bus.dead_letters import DeadLetter
from attune.bus.outcome import Reason
from attune.kernel.envelope import Stamp, encode
from attune.kernel.ids import ExecutionId, WorkerId
from attune.kernel.messages import ExecutionScheduled, MessageType
from attune.kernel.settings import Settings
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.alerts import steps as alerts
from attune.pipeline.completion import measures as attempts
from attune.pipeline.completion.model import LostWorker
from attune.pipeline.executions.model import Request
from attune.pipeline.processors.dead_letter_handler import DeadLetterHandler
from attune.pipeline.workers import measures as workers
from attune.pipeline.workers.beats import beat, mark_lost
from attune.pipeline.workers.history import Happened, WorkerEvent, note
from attune.store.database import Tx
from tests.contract.pipeline.bench import Bench
from tests.contract.pipeline.proofs import prove

S = ExecutionStatus
LEASE = 300
STALE = timedelta(seconds=30)


class Watched(Bench):
    """Scraped by a process that was there from the beginning."""

    metrics: WorkerMetrics

    def new_metrics(self) -> WorkerMetrics:
        return WorkerMetrics(self.database, self.clock, STALE)

    async def scrape(self, metrics: WorkerMetrics | None = None) -> dict[str, float]:
        """By the name and the values of its labels."""
        return {
            " ".join([family.name + point.suffix, *point.labels.values()]): point.value
            for family in await (metrics or self.metrics).families()
            for point in family.points
        }

    async def nonzero(self, name: str, metrics: WorkerMetrics | None = None) -> dict[str, float]:
        """The labels of one metric that have a value."""
        found = await self.scrape(metrics)
        words = {key: value for key, value in found.items() if key.split(" ")[0] == name and value}
        return {key.partition(" ")[2]: value for key, value in words.items()}

    async def request(self, most: int = 0, **fields: Any) -> ExecutionId:
        [made] = await self.order([Request(action_ref="a.one", max_retries=most, **fields)])
        return made.id

    async def hand(self) -> WorkerId:
        return WorkerId(await self.value(int, "SELECT min(id) FROM worker"))

    async def lose(self) -> None:
        """The worker is given up for lost; what it had goes on elsewhere, or is abandoned."""
        lost = LostWorker(await self.hand(), "hand", cordoned=False)
        await self.flow.take_back(lost, "was lost")


@pytest.fixture
async def bench(settings: Settings) -> AsyncIterator[Watched]:
    async with Watched(settings) as bench:
        bench.metrics = bench.new_metrics()
        yield bench
        await prove(bench)


async def expire(bench: Watched, execution: ExecutionId) -> None:
    """Nobody has read the hand-off in time."""
    item = ExecutionScheduled(execution_id=execution, worker_id=WorkerId(1), attempt=1)
    envelope = Stamp("test", bench.clock, bench.ids).envelope(MessageType.EXECUTION_SCHEDULED, item)
    letter = DeadLetter(
        queue="attune.execution.worker.1",
        reason=Reason.EXPIRED,
        error="",
        died_at=bench.clock.now(),
        body=encode(envelope),
    )
    await DeadLetterHandler(bench.flow).handle(letter)


async def test_timeouts_are_counted_by_the_monitor_that_found_them(bench: Watched) -> None:
    slow = await bench.request(timeout_seconds=5)
    await bench.start(slow)
    unread = await bench.request()
    bench.step(LEASE)
    await expire(bench, unread)
    for _ in range(2):
        await bench.request()
    bench.step(LEASE)
    assert await bench.flow.fail_unbegun() == 2
    assert await bench.flow.fail_unended() == 1
    expected = {
        "execution_timeout_monitor": 2,
        "dead_letter_handler": 1,
        "run_deadline_monitor": 1,
    }
    for _ in range(2):
        assert await bench.nonzero("execution_timeouts") == expected


async def test_ends_are_counted_once_by_their_status(bench: Watched) -> None:
    ids = await bench.ask(count=5)
    await bench.end(*ids[:2], seconds=2)
    assert await bench.nonzero("executions_ended_total") == {"completed": 2}
    await bench.end(ids[2], status=S.FAILED, seconds=4)
    await bench.flow.cancel(
        (await bench.ask("a.two", flow=bench.new_flow("api", through=False)))[0]
    )
    await bench.end(ids[3], status=S.TIMEOUT, seconds=None)
    await bench.start(ids[4])
    await bench.lose()
    expected = {"completed": 2, "failed": 1, "timeout": 1, "cancelled": 1, "abandoned": 1}
    for _ in range(2):
        assert await bench.nonzero("executions_ended_total") == expected
    found = await bench.scrape()
    assert found["execution_duration_seconds_sum"] == 8
    assert found["execution_duration_seconds_bucket 1"] == 1  # the one that was lost at its start
    assert found["execution_duration_seconds_bucket 5"] == 4


async def test_one_that_is_turned_away_by_its_policy_has_ended(bench: Watched) -> None:
    await bench.policy(concurrency_limit=1, concurrency_method="cancel")
    await bench.ask(count=2)
    for _ in range(2):
        assert await bench.nonzero("executions_ended_total") == {"cancelled": 1}


async def test_retries_are_counted_once_by_their_cause_while_they_go_on_and_after(
    bench: Watched,
) -> None:
    one = await bench.request(3)
    await bench.end(one, status=S.FAILED)
    assert await bench.nonzero("execution_retries_total") == {"failed": 1}
    await bench.flow.schedule()
    await bench.start(one)
    await bench.lose()
    assert await bench.nonzero("execution_retries_total") == {"failed": 1, "worker_lost": 1}
    await bench.end(one, status=S.TIMEOUT)
    await bench.flow.schedule()
    await bench.end(one)
    for _ in range(2):
        assert await bench.nonzero("execution_retries_total") == {
            "failed": 1,
            "worker_lost": 1,
            "timeout": 1,
        }
    assert await bench.nonzero("executions_ended_total") == {"completed": 1}


async def test_one_that_was_tried_again_and_ended_between_two_scrapes_is_counted(
    bench: Watched,
) -> None:
    await bench.scrape()
    one = await bench.request(1)
    for _ in range(2):
        await bench.flow.schedule()
        await bench.end(one, status=S.FAILED)
    assert await bench.nonzero("execution_retries_total") == {"failed": 1}
    assert await bench.nonzero("executions_ended_total") == {"failed": 1}


async def test_one_that_rests_between_two_attempts_is_delayed_until_it_ends(
    bench: Watched,
) -> None:
    one = await bench.request(1)
    await bench.execute(
        "UPDATE execution SET retry = :retry WHERE id = :id",
        id=one,
        retry={"max_retries": 1, "how": {"delay": 60}},
    )
    await bench.end(one, status=S.FAILED)
    assert (await bench.scrape())["executions_delayed"] == 1
    await bench.flow.cancel(one)
    found = await bench.scrape()
    assert (found["executions_delayed"], found["executions_ended_total cancelled"]) == (0, 1)
    assert await bench.nonzero("executions_ended_total") == {"cancelled": 1}


async def test_a_lost_worker_s_silence_is_measured_until_it_is_given_up_and_until_it_is_back(
    bench: Watched,
) -> None:
    worker = await bench.hand()
    bench.step(31)
    now = bench.clock.now()
    await bench.database.run(mark_lost, worker, now - STALE, now)
    bench.step(69)
    await bench.database.run(beat, worker, "x", bench.clock.now())
    for _ in range(2):
        found = await bench.scrape()
        assert (found["worker_downtime_seconds_sum lost"], found["worker_events_total lost"]) == (
            31,
            1,
        )
        assert found["worker_downtime_seconds_count back"] == 1
        assert found["worker_downtime_seconds_sum back"] == 100
        assert found["worker_downtime_seconds_bucket lost 30"] == 0
        assert found["worker_downtime_seconds_bucket lost 45"] == 1


async def test_workers_are_counted_by_how_they_are_and_used_by_what_they_can_take(
    bench: Watched,
) -> None:
    bench.step(31)
    for name, capacity in (("idle", 6), ("aside", 5), ("ill", 5)):
        await bench.come(name, capacity)
    await bench.execute("UPDATE worker SET cordoned = true WHERE name = 'aside'")
    await bench.execute("UPDATE worker SET status = 'error' WHERE name = 'ill'")
    found = await bench.scrape()
    assert (found["active_workers"], found["worker_capacity"]) == (1, 6)
    expected = {"active": 1, "cordoned": 1, "error": 1, "offline": 1}
    assert await bench.nonzero("workers") == expected

    await bench.execute("UPDATE worker SET cordoned = true WHERE name = 'hand'")
    await bench.ask(count=3)
    found = await bench.scrape()
    assert (found["active_workers"], found["worker_utilization_ratio"]) == (1, 0.5)
    assert await bench.nonzero("workers") == {"busy": 1, "cordoned": 2, "error": 1}


async def test_what_is_scheduled_for_more_than_five_minutes_is_counted(bench: Watched) -> None:
    first, _ = await bench.ask(count=2)
    bench.step(299)
    assert (await bench.scrape())["scheduled_executions_older_than_5min"] == 0
    bench.step(1)
    assert (await bench.scrape())["scheduled_executions_older_than_5min"] == 2
    await bench.start(first)
    assert (await bench.scrape())["scheduled_executions_older_than_5min"] == 1


async def test_a_row_that_is_committed_late_is_counted_and_none_twice(bench: Watched) -> None:
    async def lost(ago: float) -> None:
        at = bench.clock.now() - timedelta(seconds=ago)
        await bench.database.run(
            note, [Happened(worker=WorkerId(1), event=WorkerEvent.LOST, at=at)]
        )

    bench.step(1000)
    await lost(0)
    assert await bench.nonzero("worker_events_total") == {"registered": 1, "lost": 1}
    bench.step(100)
    await lost(200)
    assert (await bench.scrape())["worker_events_total lost"] == 2
    for _ in range(3):
        bench.step(200)
        assert (await bench.scrape())["worker_events_total lost"] == 2


async def test_counters_begin_with_the_process_and_never_fall(bench: Watched) -> None:
    """Also when rows are removed, as one day they are."""
    [one] = await bench.ask()
    await bench.end(one, status=S.FAILED)
    await bench.database.run(mark_lost, await bench.hand(), bench.clock.now(), bench.clock.now())
    before = await bench.scrape()
    bench.step(1)
    late = bench.new_metrics()
    await bench.execute("DELETE FROM worker_history")
    await bench.execute("DELETE FROM execution")
    bench.step(1)
    after = await bench.scrape()
    counters = [name for name in before if "_total" in name or "_sum" in name or "_count" in name]
    assert counters
    assert {name: after[name] for name in counters} == {name: before[name] for name in counters}
    assert await bench.nonzero("executions_ended_total", late) == {}
    assert await bench.nonzero("worker_events_total", late) == {}


MOMENTS = {"at", "since", "fresh", "old", "minute", "now"}
STATEMENTS: list[tuple[str, dict[str, Any]]] = [
    (alerts._READINGS, {"timeouts": ("overdue",)}),
    (alerts._HISTORY, {"events": ("lost",), "id": 0, "count": 10}),
    (alerts._TOLD, {"keys": ["a"]}),
    (workers._SINCE, {"events": ("lost",)}),
    (attempts._ENDED, {"ids": [1], "statuses": ["failed"]}),
    (attempts._ATTEMPTS, {"wanted": [(1, 0)]}),
    (attempts._DECISIONS, {"wanted": [(1, 0)]}),
]
SMALL = ("worker", "lane", "entry", "w", "e", "json_each", "CONSTANT")


class _Line(msgspec.Struct):
    """Of a plan, as SQLite tells it."""

    id: int
    parent: int
    notused: int
    detail: str


async def plan_of(tx: Tx, sql: str, values: dict[str, Any]) -> list[str]:
    if tx.sqlite:
        lines = await tx.all(_Line, f"EXPLAIN QUERY PLAN {sql}", **values)
        return [line.detail for line in lines]
    await tx.execute("SET LOCAL enable_seqscan = off")
    return await tx.all(str, f"EXPLAIN {sql}", **values)


@pytest.mark.parametrize(("sql", "values"), STATEMENTS)
async def test_no_number_needs_a_look_at_all_rows_of_a_large_table(
    bench: Watched, sql: str, values: dict[str, Any]
) -> None:
    """On PostgreSQL the planner may not look at all rows where an index can help; what remains has none."""
    moments = {name: bench.clock.now() for name in MOMENTS if f":{name}" in sql}
    plan = await bench.database.run(plan_of, sql, {**values, **moments})
    looks = [
        line for line in plan if re.search(r"\b(SCAN|Seq Scan)\b", line) and "USING" not in line
    ]
    tables = [re.search(r"(?:SCAN|Seq Scan on) (\w+)", line) for line in looks]
    assert {table[1] for table in tables if table} <= set(SMALL), plan
    assert plan
