"""On PostgreSQL the first page of a long queue is read along its index, whatever stands behind it."""

from pathlib import Path

from attune.kernel.configuration import load_settings
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.queues import places
from attune.pipeline.queues.model import State
from attune.store.database import Tx
from tests.contract.pipeline.world import World


async def test_the_first_page_of_a_long_queue_sorts_nothing(
    migrated_url: str, tmp_path: Path
) -> None:
    variables = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    async with World(load_settings(variables)) as world:
        await world.limit("core.noop", 1500)
        apart = world.new_flow("api", through=False)
        await apart.request(Order((Request(action_ref="core.noop"),) * 3000))

        async def plan(tx: Tx, state: State) -> str:
            [lane] = await places.lanes_of(tx, "core.noop")
            sql = f"EXPLAIN {places.page_sql(state)}"
            return "\n".join(await tx.all(str, sql, lane=lane.id, most=50, skipped=0))

        for state in (State.QUEUED, State.READY):
            found = await world.database.read(plan, state)
            assert f"ix_entry_{state}" in found
            assert "Sort" not in found
