"""What tests put into the database and read from it."""

from datetime import UTC, datetime
from typing import Any

from attune.catalog.model import Pack, PermissionSet
from attune.catalog.rows import PACKS, PERMISSION_SETS, add, next_id
from attune.kernel.ids import PackId, PermissionSetId
from attune.store.database import Database, Tx

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def load_core(database: Database, *names: str, grants: list[dict[str, Any]]) -> None:
    """A core pack with permission sets of these names, as the catalog would load it."""

    async def load(tx: Tx) -> None:
        pack = Pack(
            id=PackId(await next_id(tx, PACKS)),
            ref="core",
            label="Core",
            version="1",
            created=NOW,
            updated=NOW,
        )
        await add(tx, PACKS, pack)
        for name in names:
            row = PermissionSet(
                id=PermissionSetId(await next_id(tx, PERMISSION_SETS)),
                ref=f"core.{name}",
                pack=pack.id,
                pack_ref="core",
                grants=grants,
                is_adhoc=False,
                created=NOW,
                updated=NOW,
            )
            await add(tx, PERMISSION_SETS, row)

    await database.run(load)


async def run_sql(database: Database, sql: str, **values: Any) -> int:
    async def run(tx: Tx) -> int:
        return await tx.execute(sql, **values)

    return await database.run(run)


async def ask(database: Database, sql: str, **values: Any) -> list[str]:
    async def read(tx: Tx) -> list[str]:
        return await tx.all(str, sql, **values)

    return await database.read(read)


async def administrators(database: Database) -> list[str]:
    return await ask(
        database,
        "SELECT i.login FROM identity i JOIN permission_assignment a ON a.identity = i.id"
        " WHERE a.permission_set_ref = 'core.admin' ORDER BY i.login",
    )
