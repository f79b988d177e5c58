"""Policies bind lanes: pools, starts under a rate limit, decisions, runtime settings, and statistics for others."""

from collections.abc import Callable

import sqlalchemy as sa
from alembic import op

from attune.store.schema import Id, JsonText, Moment

revision = "0005"
down_revision = "0004"

_QUEUE_STATS = """
CREATE VIEW queue_stats AS
SELECT a.id AS action_id,
       a.ref AS action_ref,
       CAST(sum(l.queue_length) AS bigint) AS queue_length,
       CAST(sum(l.active_count) AS bigint) AS active_count,
       coalesce(max(l.max_concurrent),
                (SELECT CAST(coalesce(sum(w.capacity), 0) AS integer) FROM worker w
                  WHERE w.status = 'active' AND NOT w.cordoned)) AS max_concurrent,
       (SELECT min((SELECT e.enqueued_at FROM entry e
                     WHERE e.lane = o.id AND e.band = b.band AND e.state = 'queued'
                     ORDER BY e.sequence LIMIT 1))
          FROM lane o
         CROSS JOIN (SELECT 0 AS band UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                     UNION ALL SELECT 4) b
         WHERE o.action_ref = a.ref AND o.queue_length > 0) AS oldest_enqueued_at,
       CAST(sum(l.total_enqueued) AS bigint) AS total_enqueued,
       CAST(sum(l.total_completed) AS bigint) AS total_completed,
       max(l.updated) AS last_updated
  FROM action a JOIN lane l ON l.action_ref = a.ref
 GROUP BY a.id, a.ref
"""

_VACUUM = """
ALTER TABLE entry SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)
"""


def upgrade() -> None:
    _widen_policy()
    _widen_lane()
    _index_ready("band", "enqueued_at", "sequence", "execution")
    _create_pool()
    _create_admission()
    _create_decision()
    _create_setting()
    op.execute(_QUEUE_STATS)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_VACUUM)


def downgrade() -> None:
    op.execute("DROP VIEW queue_stats")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE entry RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)"
        )
    for name in ("setting", "decision", "admission", "pool"):
        op.drop_table(name)
    for name in ("ix_lane_retry_at", "ix_lane_policy"):
        op.drop_index(name, "lane")
    _index_ready("band", "enqueued_at", "sequence")
    _narrow("policy", _POLICY)
    _narrow("lane", _LANE)


_POLICY = ("concurrency_floor", "concurrency_ceiling")
_LANE = (
    "policy",
    "terms",
    "stamp",
    "arranged",
    "max_concurrent",
    "pools",
    "reason",
    "retry_at",
    "next_decision",
)


def _index_ready(*columns: str) -> None:
    """The order in which those that wait for a worker are read: it tells any two of them apart."""
    where = sa.text("state = 'ready'")
    op.drop_index("ix_entry_ready", "entry")
    op.create_index("ix_entry_ready", "entry", columns, postgresql_where=where, sqlite_where=where)


def _narrow(table: str, columns: tuple[str, ...]) -> None:
    with op.batch_alter_table(table) as batch:
        for column in columns:
            batch.drop_column(column)


def _widen_policy() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.add_column("policy", sa.Column("concurrency_floor", sa.Integer))
        op.add_column("policy", sa.Column("concurrency_ceiling", sa.Integer))
        return
    _rebuild("policy", _create_policy)


def _widen_lane() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for column in _lane_columns():
            op.add_column("lane", column)
    else:
        _rebuild("lane", _create_lane)
    for name in ("policy", "retry_at"):
        where = sa.text(f"{name} IS NOT NULL")
        index = f"ix_lane_{name}"
        op.create_index(index, "lane", [name], postgresql_where=where, sqlite_where=where)


def _rebuild(table: str, create: Callable[[], None]) -> None:
    """SQLite adds a column behind the constraints only, so the table is made anew and filled from the old one."""
    connection = op.get_bind()
    columns = [row[1] for row in connection.execute(sa.text(f"PRAGMA table_info({table})"))]
    names = ", ".join(columns)
    op.rename_table(table, f"{table}_before")
    create()
    op.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {table}_before")
    op.drop_table(f"{table}_before")


def _create_policy() -> None:
    op.drop_index("ix_policy_scope_type_scope_ref", "policy_before")
    op.create_table(
        "policy",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("pack", Id),
        sa.Column("pack_ref", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("scope_type", sa.Text, nullable=False),
        sa.Column("scope_ref", sa.Text),
        sa.Column("concurrency_limit", sa.Integer),
        sa.Column("concurrency_floor", sa.Integer),
        sa.Column("concurrency_ceiling", sa.Integer),
        sa.Column("concurrency_method", sa.Text, nullable=False),
        sa.Column("concurrency_parameters", JsonText, nullable=False),
        sa.Column("rate_limit", JsonText),
        sa.Column("quotas", JsonText, nullable=False),
        sa.Column("windows", JsonText, nullable=False),
        sa.Column("blackouts", JsonText, nullable=False),
        sa.Column("tags", JsonText, nullable=False),
        sa.Column("is_adhoc", sa.Boolean, nullable=False),
        sa.Column("declared", JsonText),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_policy"),
        sa.UniqueConstraint("ref", name="uq_policy_ref"),
        sa.ForeignKeyConstraint(["pack"], ["pack.id"], name="fk_policy_pack", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_policy_scope_type_scope_ref", "policy", ["scope_type", "scope_ref"])


def _lane_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("policy", Id),
        sa.Column("terms", JsonText),
        sa.Column("stamp", sa.Text, nullable=False, server_default=""),
        sa.Column("arranged", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("max_concurrent", sa.Integer),
        sa.Column("pools", JsonText),
        sa.Column("reason", sa.Text),
        sa.Column("retry_at", Moment),
        sa.Column("next_decision", sa.BigInteger, nullable=False, server_default="1"),
    ]


def _create_lane() -> None:
    op.create_table(
        "lane",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("action_ref", sa.Text, nullable=False),
        sa.Column("group_key", sa.Text, nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("next_sequence", sa.BigInteger, nullable=False),
        sa.Column("queue_length", sa.Integer, nullable=False),
        sa.Column("active_count", sa.Integer, nullable=False),
        sa.Column("total_enqueued", sa.BigInteger, nullable=False),
        sa.Column("total_completed", sa.BigInteger, nullable=False),
        sa.Column("last_enqueued_at", Moment, nullable=False),
        *_lane_columns(),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lane"),
        sa.UniqueConstraint("action_ref", "group_key", name="uq_lane_action_ref_group_key"),
        sqlite_autoincrement=True,
    )


def _create_pool() -> None:
    op.create_table(
        "pool",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("policy", Id, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("active_count", sa.Integer, nullable=False),
        sa.Column("total_accepted", sa.BigInteger, nullable=False),
        sa.Column("next_decision", sa.BigInteger, nullable=False, server_default="1"),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pool"),
        sa.UniqueConstraint("policy", "key", name="uq_pool_policy_key"),
        sqlite_autoincrement=True,
        postgresql_with={"fillfactor": 50},
    )


def _create_admission() -> None:
    op.create_table(
        "admission",
        sa.Column("execution", Id, nullable=False, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("pool", Id, nullable=False),
        sa.Column("at", Moment),
        sa.PrimaryKeyConstraint("execution", "attempt", name="pk_admission"),
    )
    op.create_index("ix_admission_pool_at", "admission", ["pool", "at"])


def _create_decision() -> None:
    op.create_table(
        "decision",
        sa.Column("lane", Id, nullable=False, autoincrement=False),
        sa.Column("number", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("active_before", sa.Integer, nullable=False),
        sa.Column("active_after", sa.Integer, nullable=False),
        sa.Column("queue_length", sa.Integer, nullable=False),
        sa.Column("max_concurrent", sa.Integer),
        sa.Column("reason", sa.Text),
        sa.Column("items", JsonText, nullable=False),
        sa.PrimaryKeyConstraint("lane", "number", name="pk_decision"),
    )
    op.create_index("ix_decision_at", "decision", ["at"])


def _create_setting() -> None:
    op.create_table(
        "setting",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", JsonText, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.Column("updated_by", Id),
        sa.PrimaryKeyConstraint("name", name="pk_setting"),
    )
