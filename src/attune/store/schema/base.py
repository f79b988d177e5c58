"""What all tables share: the types that both databases have, names of constraints, and three columns."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

SCHEMA = "attune"

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Moment = sa.TIMESTAMP(timezone=True).with_variant(sa.Integer(), "sqlite")
JsonText = JSONB().with_variant(sa.Text(), "sqlite")

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Now(FunctionElement[Any]):
    """The moment of a statement, as the database itself knows it: for rows that others write."""

    inherit_cache = True


@compiles(Now, "postgresql")
def _postgresql_now(_element: Now, _compiler: Any, **_options: Any) -> str:
    return "now()"


@compiles(Now, "sqlite")
def _sqlite_now(_element: Now, _compiler: Any, **_options: Any) -> str:
    return "(CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))"


def table(
    name: str, *parts: sa.schema.SchemaItem, written_by_others: bool = False, **options: Any
) -> sa.Table:
    """A table with what every table has: an id that is never given twice, and when it was made and changed.

    Where others write rows, they may leave the two moments to the database.
    """
    now = Now() if written_by_others else None
    return sa.Table(
        name,
        metadata,
        sa.Column("id", Id, sa.Identity(), primary_key=True),
        *parts,
        sa.Column("created", Moment, nullable=False, server_default=now),
        sa.Column("updated", Moment, nullable=False, server_default=now),
        sqlite_autoincrement=True,
        **options,
    )
