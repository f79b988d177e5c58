"""Room in the pages of executions for what each becomes: handed over, and ended."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    _leave_full(50)


def downgrade() -> None:
    _leave_full(80)


def _leave_full(percent: int) -> None:
    """Of pages that are filled from now on. SQLite has nothing of the kind."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE execution SET (fillfactor = {percent})")
