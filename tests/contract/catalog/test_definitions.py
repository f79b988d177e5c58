"""F39: an execution keeps the definition it was requested with, whatever becomes of the pack."""

import asyncio
from datetime import datetime
from pathlib import Path

from attune.catalog import rows
from attune.catalog.definitions import definition, definition_of
from attune.catalog.loading.model import Mode
from attune.catalog.model import ActionDefinition
from attune.catalog.packs import PackInstaller
from attune.catalog.rows import ACTIONS
from attune.catalog.steps.actions import NewAction, create_action
from attune.catalog.steps.packs import delete_pack
from attune.catalog.steps.runtimes import RuntimeChanges, update_runtime
from attune.kernel.ids import ActionDefinitionId
from attune.store.database import Database, Tx
from tests.contract.catalog.world import LATER, NOW, load, load_core
from tests.unit.catalog.packs import ACTION, HEAD, SHOP, archive


async def requested(tx: Tx, ref: str, now: datetime) -> ActionDefinitionId:
    return await definition_of(tx, await rows.get(tx, ACTIONS, ref), now)


async def take(database: Database, ref: str = "shop.ship") -> ActionDefinitionId:
    return await database.run(requested, ref, NOW)


async def look(database: Database, number: ActionDefinitionId) -> ActionDefinition:
    return await database.read(definition, number)


async def test_f39_a_definition_stays_when_the_pack_is_updated(
    database: Database, installer: PackInstaller
) -> None:
    await installer.install_core()
    await installer.install_archive(archive(SHOP), Mode.NEW)
    first = await take(database)
    before = await look(database, first)
    assert (before.pack_version, before.entrypoint) == ("1.2.3", "ship.py")
    assert before.pack_dir is not None
    await installer.install_archive(
        archive(
            {
                **SHOP,
                "pack.yaml": HEAD.replace("1.2.3", "2.0.0"),
                "actions/ship.yaml": ACTION + "timeout: 5\n",
                "actions/ship.py": "print('sunk')\n",
            }
        ),
        Mode.FORCE,
    )
    second = await take(database)
    assert second != first
    assert await look(database, first) == before
    after = await look(database, second)
    assert (after.pack_version, after.timeout_seconds) == ("2.0.0", 5)

    def code(found: ActionDefinition) -> str:
        folder: Path = installer.files.path_of(found.pack_dir or "")
        return (folder / "actions" / found.entrypoint).read_text()

    assert (code(before), code(after)) == ("print('shipped')\n", "print('sunk')\n")


async def test_the_same_content_has_the_same_id(database: Database) -> None:
    await load_core(database)
    await load(database)
    first = await take(database)
    await load(database, now=LATER)
    assert await take(database) == first
    assert await take(database, "core.echo") != first
    assert len(set(await asyncio.gather(*(take(database, "core.noop") for _ in range(8))))) == 1


async def test_a_changed_runtime_is_another_definition(database: Database) -> None:
    await load_core(database)
    await load(database)
    first = await take(database)
    assert (await look(database, first)).execution_config["interpreter"]["binary"] == "python3"
    changes = RuntimeChanges(execution_config={"interpreter": {"binary": "python3.13"}})
    await database.run(update_runtime, "core.python", changes, NOW)
    assert await take(database) != first
    assert (await look(database, first)).execution_config["interpreter"]["binary"] == "python3"


async def test_a_definition_outlives_its_pack(database: Database) -> None:
    await load_core(database)
    await load(database)
    first = await take(database)
    await database.run(delete_pack, "shop")
    assert (await look(database, first)).action_ref == "shop.ship"


async def test_a_script_made_over_the_api_is_inline(database: Database) -> None:
    await load_core(database)
    await load(database)
    script = NewAction(
        ref="shop.inline",
        pack_ref="shop",
        label="I",
        entrypoint="echo hi\n",
        runtime_ref="core.shell",
    )
    await database.run(create_action, script, NOW)
    assert (await look(database, await take(database, "shop.inline"))).is_inline
    assert not (await look(database, await take(database))).is_inline
