"""Packs and shortcuts that the suites share."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from attune.catalog import rows
from attune.catalog.loading.model import LoadSummary, Mode
from attune.catalog.loading.steps import load_pack
from attune.catalog.model import Row
from attune.catalog.packs import CORE_PACK
from attune.catalog.rows import Kind
from attune.catalog.sources.folder import read_pack
from attune.store.database import Database
from tests.unit.catalog.packs import SHOP, parsed

R = TypeVar("R", bound=Row)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
CORE = read_pack(CORE_PACK)


async def load(
    database: Database,
    files: Mapping[str, str] = SHOP,
    now: datetime = NOW,
    mode: Mode = Mode.FORCE,
    pack_dir: str | None = None,
) -> LoadSummary:
    return await database.run(load_pack, parsed(files), now, mode=mode, pack_dir=pack_dir)


async def load_core(database: Database) -> LoadSummary:
    return await database.run(load_pack, CORE, NOW)


async def get(database: Database, kind: Kind[R], key: str | int) -> R:
    return await database.read(rows.get, kind, key)


async def refs(database: Database, kind: Kind[R]) -> list[str]:
    page = await database.read(rows.page, kind, 1, 100)
    return [row.ref for row in page.items]
