"""On PostgreSQL taking ten of a long backlog reads ten rows, whatever the planner believes of a table that has just grown
or just run empty. A plan stays with its session, and the table becomes another."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from attune.kernel.configuration import load_settings
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.queues import steps as queues
from attune.pipeline.scheduling import line
from attune.pipeline.scheduling import steps as scheduling
from attune.store.database import Tx
from tests.contract.pipeline.world import World

FIRST = {
    "band": -1,
    "enqueued_at": datetime(1970, 1, 1, tzinfo=UTC),
    "sequence": 0,
    "execution": 0,
    "page": 10,
}


async def test_f8_the_next_ten_are_found_without_sorting_those_behind_them(
    migrated_url: str, tmp_path: Path
) -> None:
    variables = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    async with World(load_settings(variables)) as world:
        apart = world.new_flow("api", through=False)
        await apart.request(Order((Request(action_ref="core.noop"),) * 3000))

        async def plan(tx: Tx) -> str:
            return "\n".join(await tx.all(str, f"EXPLAIN {line._READY}", **FIRST))

        found = await world.database.run(plan)
    assert "ix_entry_ready" in found
    assert "Sort" not in found


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (scheduling._HAND, {"ids": [1, 2, 3], "worker": 1, "lease": FIRST["enqueued_at"]}),
        (queues._LEAVE, {"ids": [1, 2, 3]}),
    ],
    ids=["handing over", "leaving"],
)
async def test_f8_a_queue_that_ran_empty_once_is_not_read_whole_when_it_is_long_again(
    migrated_url: str, tmp_path: Path, statement: str, values: dict[str, Any]
) -> None:
    variables = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    async with World(load_settings(variables)) as world:
        apart = world.new_flow("api", through=False)
        await apart.request(Order((Request(action_ref="core.noop"),) * 3000))
        operator = await asyncpg.connect(migrated_url)
        await operator.execute("DELETE FROM attune.entry")
        await operator.execute("VACUUM ANALYZE attune.entry")
        await operator.close()

        async def plan(tx: Tx) -> str:
            return "\n".join(await tx.all(str, f"EXPLAIN {statement}", **values))

        found = await world.database.run(plan)
    assert "Index Cond: (execution = ANY" in found
