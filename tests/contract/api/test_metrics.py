"""What Prometheus reads: true at every scrape, the same in every process, never falling."""

import random
import re
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI

from attune import __version__
from attune.api.errors import install_error_handlers
from attune.api.metrics import metrics_routes
from attune.bus.opening import bus_from
from attune.identities.accounts import Accounts
from attune.kernel.clock import SystemClock
from attune.kernel.settings import Settings
from attune.pipeline.executions.model import Priority
from attune.simulation.clock import ManualClock
from attune.store.database import Database
from tests.contract.api.asgi import Client
from tests.contract.api.parts import api_parts
from tests.contract.api.plant import Plant
from tests.contract.api.world import World
from tests.contract.pipeline.queue_rows import QueueRows

_LINE = re.compile(r"([a-z_0-9]+)(?:\{(.*)\})? (\S+)")


class Scraper:
    def __init__(
        self, accounts: Accounts, settings: Settings, root: Path, *, with_queue: bool = True
    ) -> None:
        bus = bus_from(settings.message_queue, SystemClock(), random.Random(1))
        app = FastAPI()
        install_error_handlers(app)
        parts = api_parts(accounts, bus, root)
        app.include_router(metrics_routes(parts, with_queue=with_queue))
        self._client = Client(app)

    async def text(self) -> str:
        reply = await self._client.get("/metrics")
        assert reply.status == 200, reply.raw
        assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        return reply.raw.decode()

    async def values(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for line in (await self.text()).splitlines():
            if not line.startswith("#"):
                match = _LINE.fullmatch(line)
                assert match, line
                found[f"{match[1]}{{{match[2]}}}" if match[2] else match[1]] = float(match[3])
        return found

    async def waited(self, priority: str = "normal") -> float:
        """How many waits it has seen."""
        return (await self.values())[f'queue_wait_time_count{{priority="{priority}"}}']


@pytest.fixture
def scraper(world: World, settings: Settings, root: Path) -> Scraper:
    return Scraper(world.accounts, settings, root)


@pytest.fixture
def rows(database: Database, clock: ManualClock) -> QueueRows:
    return QueueRows(database, clock.now())


async def counts(scraper: Scraper) -> tuple[float, ...]:
    found = await scraper.values()
    names = ("queue_depth", "queue_active", "queue_enqueue_total", "queue_schedule_total")
    return tuple(found[name] for name in names)


async def test_before_anything_was_run_every_number_is_there_and_is_zero(scraper: Scraper) -> None:
    text = await scraper.text()
    for name, kind in [
        ("active_workers", "gauge"),
        ("workers", "gauge"),
        ("worker_capacity", "gauge"),
        ("worker_utilization_ratio", "gauge"),
        ("dlq_depth", "gauge"),
        ("scheduled_executions_older_than_5min", "gauge"),
        ("executions_delayed", "gauge"),
        ("execution_timeouts", "counter"),
        ("executions_ended_total", "counter"),
        ("execution_retries_total", "counter"),
        ("worker_events_total", "counter"),
        ("execution_duration_seconds", "histogram"),
        ("worker_downtime_seconds", "histogram"),
        ("scheduling_latency_seconds", "histogram"),
        ("queue_depth", "gauge"),
        ("queue_active", "gauge"),
        ("queue_enqueue_total", "counter"),
        ("queue_schedule_total", "counter"),
        ("queue_wait_time", "histogram"),
    ]:
        assert f"# TYPE {name} {kind}\n" in text
        assert f"# HELP {name} " in text
    assert await counts(scraper) == (0, 0, 0, 0)
    values = await scraper.values()
    assert {name for name, value in values.items() if value} == {
        f'attune_info{{version="{__version__}"}}'
    }
    for priority in Priority:
        assert f'queue_wait_time_bucket{{priority="{priority.word}",le="+Inf"}} 0\n' in text


async def test_what_waits_for_a_slot_or_a_worker_is_depth_and_what_a_worker_has_is_active(
    scraper: Scraper, rows: QueueRows
) -> None:
    await rows.lane()
    await rows.joined(1, state="queued")
    await rows.joined(1, state="ready")
    running = await rows.joined(1, state="handed")
    assert await counts(scraper) == (2, 1, 3, 1)
    await rows.ended(running, seconds=1)
    assert await counts(scraper) == (2, 0, 3, 1)


async def test_lanes_are_added_up(scraper: Scraper, rows: QueueRows) -> None:
    for lane in (1, 2, 3):
        await rows.lane(lane)
        await rows.joined(lane)
    assert await counts(scraper) == (3, 0, 3, 0)


async def test_one_that_is_taken_back_from_a_lost_worker_waits_again_and_no_counter_falls(
    scraper: Scraper, rows: QueueRows
) -> None:
    await rows.lane()
    execution = await rows.joined(1, state="handed")
    assert await counts(scraper) == (0, 1, 1, 1)
    await rows.taken_back(execution)
    assert await counts(scraper) == (1, 0, 1, 1)
    await rows.started(execution)
    assert await counts(scraper) == (0, 1, 1, 1)


async def test_a_wait_is_counted_once_in_its_bucket_and_priority_while_it_runs_and_after(
    scraper: Scraper, rows: QueueRows
) -> None:
    await rows.lane()
    execution = await rows.joined(1, Priority.HIGH)
    rows.now += timedelta(seconds=2)
    await rows.started(execution)
    for _ in range(2):
        found = await scraper.values()
        assert found['queue_wait_time_bucket{priority="high",le="1"}'] == 0
        assert found['queue_wait_time_bucket{priority="high",le="2.5"}'] == 1
        assert found['queue_wait_time_bucket{priority="high",le="+Inf"}'] == 1
        assert found['queue_wait_time_sum{priority="high"}'] == 2
        assert found['queue_wait_time_count{priority="high"}'] == 1
    await rows.ended(execution)
    assert await scraper.waited("high") == 1
    assert await scraper.waited("normal") == 0


async def test_those_that_came_and_went_between_two_scrapes_are_counted(
    scraper: Scraper, rows: QueueRows
) -> None:
    await rows.lane(1)
    await rows.lane(2)
    await rows.ran(1, 3, seconds=0)
    assert await scraper.waited() == 3
    await rows.ran(1, 2, seconds=0)
    await rows.ran(2, 4, seconds=0)
    assert await scraper.waited() == 9
    assert await scraper.waited() == 9


async def test_one_that_never_started_has_no_wait(scraper: Scraper, rows: QueueRows) -> None:
    await rows.lane()
    execution = await rows.joined(1)
    await rows.ended(execution, status="cancelled")
    assert await scraper.waited() == 0
    assert await counts(scraper) == (0, 0, 1, 1)


async def test_a_process_that_starts_later_counts_the_same_and_waits_from_its_start(
    world: World, settings: Settings, root: Path, rows: QueueRows, clock: ManualClock
) -> None:
    first = Scraper(world.accounts, settings, root)
    await rows.lane()
    await rows.ran(1, 3, seconds=0)
    await clock.advance(3600)
    rows.now = clock.now()
    second = Scraper(world.accounts, settings, root)
    await rows.ran(1, 2, seconds=0)
    assert await counts(first) == await counts(second) == (0, 0, 5, 5)
    assert (await first.waited(), await second.waited()) == (5, 2)


async def test_enable_metrics_false_leaves_the_queues_out(
    world: World, settings: Settings, root: Path
) -> None:
    text = await Scraper(world.accounts, settings, root, with_queue=False).text()
    assert "queue_" not in text
    assert "scheduling_latency" not in text
    assert "active_workers 0\n" in text
    assert re.search(r'^attune_info\{version="[^"]+"\} 1$', text, re.MULTILINE)


async def test_without_its_database_it_answers_503(scraper: Scraper, database: Database) -> None:
    await database.close()
    reply = await scraper._client.get("/metrics")
    assert reply.status == 503


async def test_what_really_ran_is_in_the_numbers(
    plant: Plant, operator: Client, settings: Settings, root: Path
) -> None:
    scraper = Scraper(plant.accounts, settings, root)
    await plant.limit("core.noop", 1)
    for _ in range(5):
        await plant.order(operator, "core.noop", priority="high")
    await plant.over()
    assert await counts(scraper) == (0, 0, 5, 5)
    assert await scraper.waited("high") == 5
    found = await scraper.values()
    assert found["active_workers"] == found['workers{state="active"}'] == 1
    assert (found["worker_capacity"], found["worker_utilization_ratio"]) == (10, 0)
    assert found['executions_ended_total{status="completed"}'] == 5
    assert found["execution_duration_seconds_count"] == 5
    assert found["scheduling_latency_seconds_count"] == 5
    assert found['scheduling_latency_seconds_bucket{le="+Inf"}'] == 5
    assert found["scheduling_latency_seconds_sum"] == found['queue_wait_time_sum{priority="high"}']
