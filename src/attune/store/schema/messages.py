"""Tables about messages."""

import sqlalchemy as sa

from attune.store.schema.base import Id, Moment, table

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
    sa.Column("replayed_by", Id),
    sa.Column("replay_count", sa.Integer, nullable=False, server_default="0"),
    # The broker may deliver a dead letter twice; queue, body and time of death tell that it is the same one.
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
)
sa.Index(
    "ix_dead_letter_waiting",
    dead_letter.c.id,
    postgresql_where=dead_letter.c.replayed_at.is_(None),
    sqlite_where=dead_letter.c.replayed_at.is_(None),
)
