"""On PostgreSQL taking ten of a long backlog reads ten rows, whatever the planner believes of a table that has just grown
or just run empty. A plan stays with its session, and the table becomes another."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from attune.kernel.configuration import load_settings
from attune.kernel.statuses import ExecutionStatus
from attune.pipeline.completion import steps as completion
from attune.pipeline.executions.model import Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.queues import holding, locking
from attune.pipeline.queues import steps as queues
from attune.pipeline.scheduling import line
from attune.pipeline.scheduling import steps as scheduling
from attune.store.database import Tx
from tests.contract.pipeline.world import World

S = ExecutionStatus

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


NOW = FIRST["enqueued_at"]
BOTH = ["entry", "execution"]
COMPLETED = completion._sources(S.COMPLETED)
END = {"status": S.COMPLETED, "failure": None, "worker": 1, "now": NOW}
ENDS = [(number, 1, msgspec.Raw(b"{}"), NOW) for number in (1, 2, 3)]
SAVED = [(n, False, 1, 0, 0, 0, 0, NOW, None, None, None, 1) for n in (1, 2, 3)]


@pytest.mark.parametrize("table", ["small", "empty"])
@pytest.mark.parametrize(
    ("statement", "values", "looks"),
    [
        (scheduling._HAND, {"ids": [1, 2, 3], "worker": 1, "lease": NOW}, ["entry"]),
        (scheduling._SCHEDULE, {"ids": [1, 2, 3], "worker": 1, "now": NOW}, ["execution"]),
        (queues._LEAVE, {"ids": [1, 2, 3]}, ["entry"]),
        (queues._leave_attempts_from(COMPLETED), {"ids": [1, 2], "attempt": 1}, BOTH),
        (completion._end_as(S.COMPLETED), {"ended": ENDS, **END}, ["execution"]),
        (completion._end_as(S.COMPLETED), {"ended": ENDS[:1], **END}, ["execution"]),
        (holding._SAVE, {"lanes": SAVED, "now": NOW}, ["lane"]),
        (holding._SAVE, {"lanes": SAVED[:1], "now": NOW}, ["lane"]),
        (locking._PLAIN_BY_KEYS, {"keys": [("core.noop", "")]}, ["lane"]),
    ],
    ids=["hand", "schedule", "leave", "end attempts", "end", "end one", "save", "save one", "lock"],
)
async def test_f8_what_was_small_or_empty_once_is_not_read_whole_when_it_has_grown(
    migrated_url: str,
    tmp_path: Path,
    table: str,
    statement: str,
    values: dict[str, Any],
    looks: list[str],
) -> None:
    variables = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    async with World(load_settings(variables)) as world:
        apart = world.new_flow("api", through=False)
        await apart.request(Order((Request(action_ref="core.noop"),) * 60))
        operator = await asyncpg.connect(migrated_url)
        for name in ("entry", "execution", "lane"):
            if table == "empty":
                await operator.execute(f"DELETE FROM attune.{name}")
            await operator.execute(f"VACUUM ANALYZE attune.{name}")
        await operator.close()

        async def plan(tx: Tx) -> Any:
            [told] = await tx.all(str, f"EXPLAIN (FORMAT JSON) {statement}", **values)
            return json.loads(told)[0]["Plan"]

        found = await world.database.run(plan)
    scans = [one for one in _parts(found) if one.get("Relation Name") in looks]
    assert {one["Relation Name"] for one in scans if one["Node Type"] != "ModifyTable"} == {*looks}
    for one in scans:
        if "Scan" in one["Node Type"]:
            assert _is_by_key(one), one


def _parts(plan: Any) -> Iterator[Any]:
    yield plan
    for one in plan.get("Plans", ()):
        yield from _parts(one)


def _is_by_key(scan: Any) -> bool:
    """It has the key in the condition under which an index is read, its own or that of the bitmap below it."""
    conditions = [one.get("Index Cond", "") for one in _parts(scan)]
    return any(key in one for one in conditions for key in ("(execution = ", "(id = ", "group_key"))
