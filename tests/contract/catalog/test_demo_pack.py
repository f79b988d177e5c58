"""The demo pack as a part of a process: loaded once, brought up to date, and never over anybody's own."""

from pathlib import Path

import pytest

from attune.catalog.packs import PackInstaller
from attune.catalog.rows import ACTIONS, PACKS, POLICIES, RULES
from attune.catalog.steps.actions import NewAction, create_action
from attune.catalog.steps.packs import NewPack, create_pack, delete_pack
from attune.catalog.steps.switches import switch_rule
from attune.kernel.clock import SystemClock
from attune.kernel.settings import Settings
from attune.services import demo
from attune.services.demo import DEMO_PACK, DemoPack
from attune.store.database import Database
from tests.contract.catalog.world import NOW, get, refs
from tests.unit.catalog.packs import write


@pytest.fixture
async def part(database: Database, installer: PackInstaller, tmp_path: Path) -> DemoPack:
    await installer.install_core()
    return DemoPack(Settings(data_dir=tmp_path), database, SystemClock())


async def demo_refs(database: Database) -> list[str]:
    return [ref for ref in await refs(database, ACTIONS) if ref.startswith("demo.")]


async def test_it_is_loaded_whole_and_once(
    database: Database, part: DemoPack, tmp_path: Path
) -> None:
    await part.start()
    assert await demo_refs(database) == [
        "demo.charge_card",
        "demo.flaky",
        "demo.greet",
        "demo.report",
    ]
    assert await refs(database, POLICIES) == ["demo.charge_card_limit"]
    assert len(await refs(database, RULES)) == 3
    pack = await get(database, PACKS, "demo")
    assert (tmp_path / "packs" / (pack.pack_dir or "") / "actions" / "greet.sh").is_file()
    await database.run(switch_rule, "demo.on_odd_order", NOW, enabled=False)
    await part.start()
    assert await get(database, PACKS, "demo") == pack
    assert not (await get(database, RULES, "demo.on_odd_order")).enabled


async def test_a_new_version_of_it_replaces_the_old_one(
    database: Database, part: DemoPack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = (DEMO_PACK / "pack.yaml").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(demo, "DEMO_PACK", write(tmp_path / "old", {"pack.yaml": head}))
        await part.start()
        assert await demo_refs(database) == []
    await part.start()
    assert len(await demo_refs(database)) == 4


async def test_somebody_s_own_pack_of_that_name_is_left_alone(
    database: Database, part: DemoPack
) -> None:
    own = NewPack(ref="demo", label="My demo", version="9.0.0")
    await database.run(create_pack, own, NOW)
    await part.start()
    assert (await get(database, PACKS, "demo")).label == "My demo"
    assert await demo_refs(database) == []


async def test_what_stands_in_its_way_does_not_keep_a_process_from_starting(
    database: Database, part: DemoPack
) -> None:
    mark = NewPack(ref="demo", label="D", version="1.0.0", meta={"shipped_with": "attune"})
    await database.run(create_pack, mark, NOW)
    mine = NewAction(ref="demo.greet", pack_ref="demo", label="Mine", entrypoint="echo hi")
    await database.run(create_action, mine, NOW)
    await part.start()
    assert await demo_refs(database) == ["demo.greet"]
    await database.run(delete_pack, "demo")
    await part.start()
    assert len(await demo_refs(database)) == 4
