"""Probes on a real control plane: what one execution costs is counted, and nothing is left of them afterwards."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from attune.kernel.configuration import load_settings
from attune.pipeline.queues.steps import Lanes
from attune.store.database import Database
from attune.store.sqlite_tx import SQLiteTx
from bench.cost.ledger import Ledger
from bench.cost.placing import put
from bench.cost.probes import probes, unseen
from harness.control_plane import ControlPlane

WRAPPED = ((Database, "run"), (Database, "read"), (SQLiteTx, "_fetch"), (Lanes, "save"))


async def test_an_execution_is_counted_from_its_request_to_its_end(tmp_path: Path) -> None:
    async with ControlPlane(load_settings({"ATTUNE__DATA_DIR": str(tmp_path)})) as plane:
        await plane.start_worker()
        await plane.start_executor()
        with probes(plane) as ledger:
            execution = await plane.run("core.noop")
            with unseen():
                await plane.ended(execution.id)
    assert ledger.missing == []
    assert ledger.counts["rows into execution"] == 1
    assert ledger.counts["commits"] >= 1
    assert ledger.counts["messages"] >= 1
    assert {"accept", "join", "assign", "hand-off read", "run", "complete"} <= ledger.stages.keys()


async def test_questions_of_the_measurement_itself_are_not_counted(tmp_path: Path) -> None:
    async with ControlPlane(load_settings({"ATTUNE__DATA_DIR": str(tmp_path)})) as plane:
        with probes(plane) as ledger, unseen():
            await plane.value(int, "SELECT count(*) FROM entry")
    assert not ledger.counts
    assert not ledger.statements


async def test_probes_leave_everything_as_it_was(tmp_path: Path) -> None:
    before = [getattr(owner, name) for owner, name in WRAPPED]
    async with ControlPlane(load_settings({"ATTUNE__DATA_DIR": str(tmp_path)})) as plane:
        with probes(plane):
            assert [getattr(owner, name) for owner, name in WRAPPED] != before
    assert [getattr(owner, name) for owner, name in WRAPPED] == before


@pytest.mark.parametrize(
    "place",
    [
        "attune.nowhere:Lanes.save",
        "attune.pipeline.queues.steps:Nobody.save",
        "attune.pipeline.queues.steps:Lanes.never",
    ],
)
def test_a_place_that_was_renamed_is_told_as_missing(place: str) -> None:
    ledger = Ledger()
    with ExitStack() as stack:
        put(stack, ledger, place, lambda original: original)
    assert ledger.missing == [place]
