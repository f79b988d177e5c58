"""Runtime settings on each database."""

import asyncio
from datetime import UTC, datetime

import pytest

from attune.catalog.runtime_settings import RuntimeSettings, change_settings, load_settings
from attune.kernel.errors import InvalidInput
from attune.kernel.ids import IdentityId
from attune.store.database import Database, Tx
from attune.store.values import Json

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_setting_is_set_changed_and_brought_back_to_its_default(database: Database) -> None:
    assert await database.read(load_settings) == RuntimeSettings()
    first = {"max_concurrent_executions": 0, "ageing_seconds": 1.5}
    changed = await database.run(change_settings, first, IdentityId(1), NOW)
    assert changed == RuntimeSettings(max_concurrent_executions=0, ageing_seconds=1.5)
    second = {"max_concurrent_executions": 7, "ageing_seconds": None, "max_queue_length": None}
    changed = await database.run(change_settings, second, None, NOW)
    assert changed == RuntimeSettings(max_concurrent_executions=7)
    assert await database.read(load_settings) == changed


async def test_who_changed_it_and_when_is_kept(database: Database) -> None:
    await database.run(change_settings, {"max_queue_length": 5}, IdentityId(42), NOW)

    async def row(tx: Tx) -> tuple[int | None, datetime | None]:
        by = await tx.first(int, "SELECT updated_by FROM setting")
        return by, await tx.first(datetime, "SELECT updated FROM setting")

    assert await database.read(row) == (42, NOW)


async def test_a_refused_change_changes_nothing(database: Database) -> None:
    await database.run(change_settings, {"max_queue_length": 5}, None, NOW)
    wrong = {"max_queue_length": 6, "ageing_seconds": -1}
    with pytest.raises(InvalidInput):
        await database.run(change_settings, wrong, None, NOW)
    assert await database.read(load_settings) == RuntimeSettings(max_queue_length=5)


async def test_rows_that_others_keep_beside_the_settings_are_left_alone(database: Database) -> None:
    async def keep(tx: Tx) -> None:
        await tx.execute(
            "INSERT INTO setting (name, value, updated) VALUES ('adaptive.1', :value, :now)",
            value=Json({"limit": 3}),
            now=NOW,
        )

    await database.run(keep)
    assert await database.read(load_settings) == RuntimeSettings()


async def test_a_change_wakes_whoever_listens_to_settings(database: Database) -> None:
    heard = asyncio.Event()
    database.listen("settings", lambda _key: heard.set())
    await database.run(change_settings, {"max_queue_length": 5}, None, NOW)
    async with asyncio.timeout(10):
        await heard.wait()
