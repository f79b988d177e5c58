"""Installing puts the files and the rows in place together, or leaves both as they were."""

import asyncio
from pathlib import Path

import pytest

from attune.catalog import packs
from attune.catalog.files import digest_of
from attune.catalog.loading.model import Mode
from attune.catalog.packs import PackInstaller
from attune.catalog.rows import ACTIONS, PACKS
from attune.kernel.clock import SystemClock
from attune.kernel.errors import Conflict, DatabaseUnavailable, InvalidInput
from attune.store.database import Database, Tx
from tests.contract.catalog.world import get, refs
from tests.unit.catalog.packs import HEAD, SHOP, archive, write


def files_of(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.name != ".lock"}


async def test_the_core_pack_comes_with_the_product(installer: PackInstaller) -> None:
    assert (await installer.install_core()).pack.created == ("core",)
    assert not (await installer.install_core()).changed


async def test_a_folder_is_copied_to_the_place_of_its_content(
    database: Database, installer: PackInstaller, root: Path, tmp_path: Path
) -> None:
    await installer.install_core()
    folder = write(tmp_path / "mine", SHOP)
    (folder / "actions" / "ship.py").chmod(0o755)
    summary = await installer.install_folder(folder, Mode.NEW)
    assert summary.pack.created == ("shop",)
    pack = await get(database, PACKS, "shop")
    assert pack.pack_dir == f"shop/{digest_of(folder)}"
    kept = installer.files.path_of(pack.pack_dir)
    assert kept == root / pack.pack_dir
    assert digest_of(kept) == digest_of(folder)
    assert not any(".staging" in path for path in files_of(root))


async def test_an_upload_is_installed_and_updated_in_place(
    database: Database, installer: PackInstaller
) -> None:
    await installer.install_core()
    first = await installer.install_archive(archive(SHOP, "shop-1/"), Mode.NEW)
    with pytest.raises(Conflict, match="There is a pack 'shop' already"):
        await installer.install_archive(archive(SHOP), Mode.NEW)
    newer = {**SHOP, "pack.yaml": HEAD.replace("1.2.3", "1.2.4")}
    second = await installer.install_archive(archive(newer), Mode.FORCE)
    assert (second.pack_id, second.version) == (first.pack_id, "1.2.4")


@pytest.mark.parametrize(
    "files",
    [
        {**SHOP, "rules/on_order.yaml": "ref: r\ntrigger_ref: core.nothing\naction_ref: ship\n"},
        {**SHOP, "actions/ship.yaml": "ref: elsewhere.ship\nentry_point: x\n"},
        {"README": "no pack"},
    ],
    ids=["refused by the database", "refused by its files", "no pack"],
)
async def test_a_refusal_leaves_nothing_behind(
    database: Database, installer: PackInstaller, root: Path, files: dict[str, str]
) -> None:
    await installer.install_core()
    before = files_of(root)
    with pytest.raises(InvalidInput):
        await installer.install_archive(archive(files), Mode.NEW)
    assert files_of(root) == before
    assert await refs(database, PACKS) == ["core"]


async def test_a_conflict_leaves_the_present_version_in_place(
    database: Database, installer: PackInstaller, root: Path
) -> None:
    await installer.install_core()
    await installer.install_archive(archive(SHOP), Mode.NEW)
    before = files_of(root)
    newer = {**SHOP, "pack.yaml": HEAD.replace("1.2.3", "1.2.4")}
    for files in (SHOP, newer):
        with pytest.raises(Conflict):
            await installer.install_archive(archive(files), Mode.NEW)
    assert files_of(root) == before
    assert (await get(database, ACTIONS, "shop.ship")).pack_ref == "shop"


async def test_files_stay_when_a_commit_may_have_happened(
    database: Database, installer: PackInstaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the commit is lost; the rows are there, so their files must be."""
    await installer.install_core()
    run = database.run

    async def run_and_lose(*args: object, **kwargs: object) -> None:
        await run(*args, **kwargs)  # type: ignore[arg-type]
        raise DatabaseUnavailable("connection lost")

    monkeypatch.setattr(database, "run", run_and_lose)
    with pytest.raises(DatabaseUnavailable):
        await installer.install_archive(archive(SHOP), Mode.NEW)
    pack = await get(database, PACKS, "shop")
    assert installer.files.path_of(pack.pack_dir or "").is_dir()


async def test_files_go_when_the_database_step_fails(
    installer: PackInstaller, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await installer.install_core()
    before = files_of(root)

    async def fail(tx: Tx, *_: object, **__: object) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr(packs, "load_pack", fail)
    with pytest.raises(RuntimeError, match="bug"):
        await installer.install_archive(archive(SHOP), Mode.NEW)
    assert files_of(root) == before


async def test_several_install_at_once(
    database: Database, installer: PackInstaller, root: Path
) -> None:
    await installer.install_core()
    others = [PackInstaller(database, SystemClock(), root) for _ in range(4)]
    versions = [{**SHOP, "pack.yaml": HEAD.replace("1.2.3", f"1.2.{n % 2}")} for n in range(4)]
    await asyncio.gather(
        *(
            other.install_archive(archive(files), Mode.FORCE)
            for other, files in zip(others, versions, strict=True)
        )
    )
    pack = await get(database, PACKS, "shop")
    assert installer.files.path_of(pack.pack_dir or "").is_dir()
    assert len(list((root / "shop").iterdir())) == 2


async def test_what_a_dead_installer_left_is_swept(installer: PackInstaller, root: Path) -> None:
    (root / ".staging" / "old").mkdir(parents=True)
    await installer.install_core()
    assert not (root / ".staging").exists()


async def test_one_that_gives_up_waiting_holds_nobody_up(installer: PackInstaller) -> None:
    async with installer.files.staging():
        waiting = asyncio.create_task(installer.install_core())
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(20):
        await installer.install_core()
