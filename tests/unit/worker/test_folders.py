"""Folders and scripts that serve many runs: nothing of one run is found by the next."""

import os
from pathlib import Path

import pytest

from attune.kernel.clock import SystemClock
from attune.worker.folders import Folders, Scripts
from attune.worker.runner import Runner
from tests.unit.worker.worlds import World


async def test_a_folder_that_was_left_as_it_was_found_serves_the_next_run(tmp_path: Path) -> None:
    folders = Folders()
    async with folders.private(tmp_path) as first:
        assert list(first.iterdir()) == [first / "tmp"]
    async with folders.private(tmp_path) as second:
        assert second == first
        async with folders.private(tmp_path) as third:
            assert third != second
    await folders.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "leave",
    [
        lambda folder: (folder / "file").touch(),
        lambda folder: (folder / "tmp" / "file").touch(),
        lambda folder: (folder / "tmp").chmod(0o755),
        lambda folder: folder.chmod(0o755),
        lambda folder: (folder / "tmp").rmdir(),
        lambda folder: (folder / "tmp").rename(folder / "other"),
        lambda folder: (folder / "tmp").rmdir() or (folder / "tmp").symlink_to("/"),
    ],
    ids=["file", "scratch", "mode", "folder's mode", "removed", "renamed", "link"],
)
async def test_one_in_which_anything_was_left_is_gone(tmp_path: Path, leave: object) -> None:
    folders = Folders()
    async with folders.private(tmp_path) as first:
        leave(first)  # type: ignore[operator]
    assert not first.exists()
    async with folders.private(tmp_path) as second:
        assert list(second.iterdir()) == [second / "tmp"]


async def test_one_that_somebody_touched_while_it_was_free_is_not_used(tmp_path: Path) -> None:
    folders = Folders()
    async with folders.private(tmp_path) as first:
        pass
    (first / "tmp" / "trap").touch()
    async with folders.private(tmp_path) as second:
        assert second != first


async def test_a_script_is_written_once_and_anew_when_somebody_changed_it(tmp_path: Path) -> None:
    scripts = Scripts()
    file = scripts.file(tmp_path, "a.b", "echo 1\n")
    assert scripts.file(tmp_path, "a.b", "echo 1\n") == file
    before = file.stat()
    file.chmod(0o600)
    file.write_text("echo 2\n")
    file.chmod(0o400)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = scripts.file(tmp_path, "a.b", "echo 1\n")
    assert again != file
    assert again.read_text() == "echo 1\n"
    again.unlink()
    assert scripts.file(tmp_path, "a.b", "echo 1\n").read_text() == "echo 1\n"


async def test_scripts_of_one_name_and_several_texts_are_kept_apart(tmp_path: Path) -> None:
    scripts = Scripts()
    files = {scripts.file(tmp_path, "a.b", f"echo {number}\n") for number in range(5)}
    assert len(files) == 5
    await scripts.tidy(2)
    assert sum(file.exists() for file in files) == 2


async def test_a_worker_that_stops_leaves_neither(tmp_path: Path) -> None:
    world = World(tmp_path)
    runner = Runner(clock=SystemClock(), environment=os.environ)
    await runner.run(world.make("echo 1"), cancel=world.cancel)
    assert list(world.work.iterdir())
    await runner.close()
    assert list(world.work.iterdir()) == []
    await world.runner.close()
