"""Who holds which permission set, and who was the first administrator."""

import sqlalchemy as sa
from alembic import op

from attune.store.schema import Id, Moment

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "permission_assignment",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("identity", Id, nullable=False),
        sa.Column("permission_set", Id),
        sa.Column("permission_set_ref", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_permission_assignment"),
        sa.UniqueConstraint(
            "identity",
            "permission_set_ref",
            name="uq_permission_assignment_identity_permission_set_ref",
        ),
        sa.ForeignKeyConstraint(
            ["identity"],
            ["identity.id"],
            name="fk_permission_assignment_identity",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["permission_set"],
            ["permission_set.id"],
            name="fk_permission_assignment_permission_set",
            ondelete="CASCADE",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_permission_assignment_permission_set", "permission_assignment", ["permission_set"]
    )
    op.create_table(
        "first_administrator",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("login", sa.Text, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_first_administrator"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("first_administrator")
    op.drop_table("permission_assignment")
