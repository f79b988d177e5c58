"""What all tables share: the types that both databases have, names of constraints, and three columns."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

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


def table(name: str, *parts: sa.schema.SchemaItem, **options: Any) -> sa.Table:
    """A table with what every table has: an id that is never given twice, and when it was made and changed."""
    return sa.Table(
        name,
        metadata,
        sa.Column("id", Id, sa.Identity(), primary_key=True),
        *parts,
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sqlite_autoincrement=True,
        **options,
    )
