"""attune.queue_stats: the queries that operators know run as they are written, and tell the truth."""

import re
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from attune.kernel.configuration import load_settings
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.queues.queries import queue_stats
from tests.contract.pipeline.world import World

ACTIVE_QUEUES = """
SELECT action_id, queue_length, active_count, max_concurrent,
       oldest_enqueued_at, last_updated
FROM attune.queue_stats
WHERE queue_length > 0 OR active_count > 0
ORDER BY queue_length DESC;
"""
STUCK_QUEUES = """
SELECT a.ref, qs.queue_length, qs.active_count,
       qs.oldest_enqueued_at,
       NOW() - qs.last_updated AS stale_duration
FROM attune.queue_stats qs
JOIN attune.action a ON a.id = qs.action_id
WHERE (queue_length > 0 OR active_count > 0)
  AND last_updated < NOW() - INTERVAL '10 minutes';
"""
THROUGHPUT = """
SELECT a.ref, qs.total_completed, qs.total_enqueued,
       qs.total_completed::float / NULLIF(qs.total_enqueued, 0) * 100 AS completion_rate
FROM attune.queue_stats qs
JOIN attune.action a ON a.id = qs.action_id
WHERE total_enqueued > 0
ORDER BY total_enqueued DESC;
"""
ALL_QUEUES = """
SELECT SUM(queue_length) as total_queued,
       COUNT(*) as num_actions,
       MAX(queue_length) as max_queue
FROM attune.queue_stats;
"""


async def test_the_monitoring_queries_run_verbatim_on_postgresql(
    migrated_url: str, tmp_path: Path
) -> None:
    variables = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    async with World(load_settings(variables)) as world:
        await world.limit("core.noop", 2)
        await world.start_worker(capacity=1)
        await world.flow.pause("core.echo", None, "a test")
        await world.flow.request(Order((Request(action_ref="core.echo"),) * 3))
        await world.flow.request(Order((Request(action_ref="core.noop"),) * 5))
        for execution in await world.values(
            int, "SELECT id FROM execution WHERE action_ref = 'core.noop'"
        ):
            await world.ended(execution)
        await world.execute(
            "UPDATE lane SET updated = updated - INTERVAL '1 hour' WHERE action_ref = 'core.echo'"
        )
        connection = await asyncpg.connect(migrated_url)
        active = await connection.fetch(ACTIVE_QUEUES)
        stuck = await connection.fetch(STUCK_QUEUES)
        throughput = await connection.fetch(THROUGHPUT)
        everything = await connection.fetchrow(ALL_QUEUES)
        await connection.close()
    assert [(row["queue_length"], row["active_count"]) for row in active] == [(3, 0)]
    assert active[0]["oldest_enqueued_at"] is not None
    assert [(row["ref"], row["queue_length"]) for row in stuck] == [("core.echo", 3)]
    assert stuck[0]["stale_duration"].total_seconds() > 3000
    assert {row["ref"]: row["completion_rate"] for row in throughput} == {
        "core.noop": 100.0,
        "core.echo": 0.0,
    }
    assert everything is not None
    assert (everything["total_queued"], everything["max_queue"]) == (3, 3)


async def test_the_statistics_are_true_in_the_commit_that_changes_them(still: World) -> None:
    await still.limit("core.noop", 2)
    flow = still.new_flow("patient", through=True, no_worker_grace=timedelta(hours=1))
    for waiting in range(4):
        await flow.request(Order((Request(action_ref="core.noop"),)))
        found = await still.database.read(queue_stats, "core.noop")
        assert (found.active_count, found.queue_length) == (
            min(waiting + 1, 2),
            max(waiting - 1, 0),
        )
        assert found.total_enqueued == waiting + 1
        assert (found.oldest_enqueued_at is None) == (found.queue_length == 0)
    await flow.clear("core.noop", None, "a test")
    found = await still.database.read(queue_stats, "core.noop")
    assert (found.active_count, found.queue_length, found.oldest_enqueued_at) == (0, 0, None)
    assert found.total_completed == found.total_enqueued


@pytest.mark.parametrize("query", [ACTIVE_QUEUES, STUCK_QUEUES, THROUGHPUT])
def test_the_documentation_shows_the_same_queries(query: str) -> None:
    text = Path("docs/operations/queues.md").read_text()
    assert re.sub(r"\s+", " ", query).strip() in re.sub(r"\s+", " ", text)
