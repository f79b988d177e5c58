"""Every table, in one place. The migrations in `migrations/` add up to exactly this; a test compares them.

Ids come from `Tx.next_ids`. On PostgreSQL the tables live in the schema `attune`, reached by search path.
"""

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


def table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    """A table with what every table has: an id that is never given twice, and when it was made and changed."""
    return sa.Table(
        name,
        metadata,
        sa.Column("id", Id, sa.Identity(), primary_key=True),
        *parts,
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sqlite_autoincrement=True,
    )


dead_letter = table(
    "dead_letter",
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("message_id", sa.Text),
    sa.Column("message_type", sa.Text),
    sa.Column("retry_count", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("died_at", Moment, nullable=False),
    sa.Column("replayed_at", Moment),
    # The broker may deliver a dead letter twice; queue, body and time of death tell that it is the same one.
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
)
sa.Index(
    "ix_dead_letter_waiting",
    dead_letter.c.id,
    postgresql_where=dead_letter.c.replayed_at.is_(None),
    sqlite_where=dead_letter.c.replayed_at.is_(None),
)
