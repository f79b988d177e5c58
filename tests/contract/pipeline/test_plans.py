"""On PostgreSQL taking ten of a long backlog reads ten rows, whatever the planner believes of a table that has just grown."""

from datetime import UTC, datetime
from pathlib import Path

from attune.kernel.configuration import load_settings
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.scheduling import line
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
