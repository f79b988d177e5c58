"""Whether a database has the schema of this version, asked with one look.

Only a yes counts. What is wrong where it is a no, and how it is mended, is `store/migrate.py`'s to say.
"""

from pathlib import Path
from typing import Final

from attune import store
from attune.store.database import Database, Tx

MIGRATIONS: Final = Path(store.__file__).parent / "migrations" / "versions"

_IN_POSTGRESQL: Final = "SELECT to_regclass('alembic_version') IS NOT NULL"
_IN_SQLITE: Final = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"


async def has_this_schema(database: Database) -> bool:
    return await database.read(_revisions) == [newest_revision()]


def newest_revision() -> str:
    """Each migration's file begins with its revision, and these are numbers of one length."""
    return max(file.name.partition("_")[0] for file in MIGRATIONS.glob("[0-9]*_*.py"))


async def _revisions(tx: Tx) -> list[str]:
    if not await tx.one(bool, _IN_SQLITE if tx.sqlite else _IN_POSTGRESQL):
        return []
    return await tx.all(str, "SELECT version_num FROM alembic_version")
