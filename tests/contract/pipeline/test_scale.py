"""On PostgreSQL no step of the engine reads more rows because more executions wait.

No time is measured here: the rows that each statement looks at are counted. `python -m bench backlog` has the times.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from attune.identities.row_conditions import ALWAYS
from attune.kernel.configuration import load_settings
from attune.pipeline.executions.model import Priority, Request
from attune.pipeline.executions.requests import Order
from attune.pipeline.queues.overview import list_queues, system_queue
from attune.pipeline.queues.places import places
from attune.pipeline.queues.queries import queue_stats
from harness.backlog import ACTION, LIMIT, Backlog
from harness.control_plane import ControlPlane
from tests.contract.pipeline.reads import Reads

QUEUED: Final = 20_000
FEW: Final = 60


@pytest.fixture
async def backlog(migrated_url: str, tmp_path: Path) -> AsyncIterator[Backlog]:
    variables = {"ATTUNE__DATA_DIR": str(tmp_path), "ATTUNE__DATABASE__URL": migrated_url}
    async with ControlPlane(load_settings(variables)) as plane:
        backlog = Backlog(plane)
        await backlog.open()
        await backlog.grow(QUEUED)
        yield backlog


@pytest.mark.parametrize("analyzed", [True, False], ids=["analyzed", "just grown"])
async def test_an_admission_reads_the_same_few_rows_however_many_wait(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch, analyzed: bool
) -> None:
    if analyzed:
        await backlog.settle()
    reads = Reads(monkeypatch)
    done = await backlog.admit()
    assert len(done.handed) == 1
    assert {scan.table for scan in reads.scans} >= {"lane", "entry", "execution", "worker"}
    assert reads.above(FEW) == []


async def test_to_join_a_long_queue_reads_none_of_it(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backlog.settle()
    reads = Reads(monkeypatch)
    [made] = await backlog.flow.request(Order((Request(action_ref=ACTION),)))
    await backlog.flow.cancel(made.id)
    assert reads.above(FEW) == []


async def test_an_urgent_one_is_found_and_moved_without_reading_those_ahead_of_it(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backlog.settle()
    [made] = await backlog.flow.request(Order((Request(action_ref=ACTION),)))
    reads = Reads(monkeypatch)
    await backlog.flow.reprioritize(made.id, Priority.CRITICAL, "root")
    done = await backlog.admit()
    assert [one.execution for one in done.handed] == [made.id]
    assert reads.above(FEW) == []


async def test_the_passes_that_look_for_forgotten_work_do_not_read_what_waits(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backlog.settle()
    await backlog.plane.execute("UPDATE lane SET max_concurrent = :most", most=LIMIT + 1)
    reads = Reads(monkeypatch)
    await backlog.flow.arrange()
    await backlog.flow.promote()
    assert await backlog.plane.value(int, "SELECT active_count FROM lane") == LIMIT + 1
    await backlog.flow.open_gates()
    await backlog.flow.schedule()
    await backlog.flow.take_back_from_silent()
    assert reads.above(FEW) == []


async def test_to_find_who_waited_too_long_reads_one_batch_of_the_oldest(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backlog.settle()
    reads = Reads(monkeypatch)
    assert await backlog.flow.expire() == 0
    assert reads.above(500) == []


async def test_counts_and_first_pages_for_people_do_not_read_what_waits(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backlog.settle()
    database = backlog.plane.database
    reads = Reads(monkeypatch)
    await backlog.plane.values(str, "SELECT action_ref FROM queue_stats")
    assert (await database.read(queue_stats, ACTION)).queue_length == QUEUED
    assert (await database.read(system_queue)).queue_depth == QUEUED
    assert len(await database.read(list_queues, ALWAYS, 50, 0)) == 1
    page = await database.read(places, ACTION, None, None, 50, 0)
    assert (len(page.items), page.total) == (50, QUEUED)
    assert reads.above(FEW) == []
