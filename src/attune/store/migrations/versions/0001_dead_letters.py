"""Dead letters."""

import sqlalchemy as sa
from alembic import op

from attune.store.schema import Id, Moment

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "dead_letter",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("message_id", sa.Text),
        sa.Column("message_type", sa.Text),
        sa.Column("retry_count", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("died_at", Moment, nullable=False),
        sa.Column("replayed_at", Moment),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_dead_letter"),
        sa.UniqueConstraint("fingerprint", name="uq_dead_letter_fingerprint"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_dead_letter_waiting",
        "dead_letter",
        ["id"],
        postgresql_where=sa.text("replayed_at IS NULL"),
        sqlite_where=sa.text("replayed_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_table("dead_letter")
