"""The parts of the pipeline's benchmark that decide what its figures mean."""

import sqlite3
import time
from pathlib import Path

import pytest

from attune.catalog.loading.model import Mode
from attune.kernel.configuration import load_settings
from bench.pipeline import books
from bench.pipeline.books import NotFinished, SQLiteBooks, finished
from bench.pipeline.latency import Ends, percentiles
from bench.pipeline.pack import PYTHON, REUSED, SHELL, TRIGGER, write_pack
from harness.control_plane import ControlPlane


def database(folder: Path, *, under_way: int, completed: int) -> SQLiteBooks:
    file = folder / "attune.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE lane (queue_length INT, active_count INT)")
        connection.execute("INSERT INTO lane VALUES (?, 0)", (under_way,))
        connection.execute("CREATE TABLE execution (status TEXT)")
        connection.executemany(
            "INSERT INTO execution VALUES (?)", [("completed",)] * completed + [("failed",)]
        )
    connection.close()
    return SQLiteBooks(file)


async def test_the_end_is_when_nothing_is_under_way_and_all_have_completed(tmp_path: Path) -> None:
    found = database(tmp_path, under_way=0, completed=3)
    before = time.perf_counter()
    assert before <= await finished(found, 3) <= time.perf_counter()
    await found.close()


@pytest.mark.parametrize(("under_way", "completed"), [(1, 3), (0, 2)])
async def test_a_figure_without_all_executions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, under_way: int, completed: int
) -> None:
    monkeypatch.setattr(books, "_PATIENCE", 0.05)
    found = database(tmp_path, under_way=under_way, completed=completed)
    with pytest.raises(NotFinished, match="of 3 executions completed"):
        await finished(found, 3)
    await found.close()


async def test_an_end_that_is_seen_before_its_submission_is_answered_counts() -> None:
    ends = Ends()
    await ends.saw(7)
    seen = time.perf_counter()
    assert await ends.of(7) <= seen


def test_percentiles_are_milliseconds_by_the_nearest_rank() -> None:
    seconds = [number / 1000 for number in range(100, 0, -1)]
    assert percentiles(seconds) == {"p50": pytest.approx(50.5), "p99": pytest.approx(99.0)}


async def test_the_pack_can_be_loaded_and_has_what_the_cases_ask_for(tmp_path: Path) -> None:
    settings = load_settings({"ATTUNE__DATA_DIR": str(tmp_path / "data")})
    async with ControlPlane(settings) as plane:
        await plane.installer.install_folder(write_pack(tmp_path / "bench"), Mode.CHANGED)
        actions = await plane.values(str, "SELECT ref FROM action WHERE pack_ref = 'bench'")
        rules = await plane.values(str, "SELECT trigger_ref FROM rule WHERE pack_ref = 'bench'")
    assert set(actions) == {SHELL, PYTHON, REUSED}
    assert rules == [TRIGGER]
