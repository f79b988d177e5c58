"""Who holds which permission set, and who was the first administrator."""

import sqlalchemy as sa

from attune.store.schema.base import Id, table

# The ref says what is held, so that the administrator holds core.admin before the core pack is loaded. The id
# is there once the set is, and takes the assignment away with it.
permission_assignment = table(
    "permission_assignment",
    sa.Column("identity", Id, sa.ForeignKey("identity.id", ondelete="CASCADE"), nullable=False),
    sa.Column(
        "permission_set", Id, sa.ForeignKey("permission_set.id", ondelete="CASCADE"), index=True
    ),
    sa.Column("permission_set_ref", sa.Text, nullable=False),
    sa.UniqueConstraint("identity", "permission_set_ref"),
)

# At most one row, of id 1: whoever inserts it is the first administrator. It outlives the identity, because
# the place is given once and not to whoever registers after that identity is gone.
first_administrator = table(
    "first_administrator",
    sa.Column("login", sa.Text, nullable=False),
)
