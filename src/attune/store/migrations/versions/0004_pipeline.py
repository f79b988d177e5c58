"""Policies, and what happens: events, enforcements, executions, queues and workers."""

import sqlalchemy as sa
from alembic import op

from attune.store.schema import Id, JsonText, Moment
from attune.store.schema.base import Now

revision = "0004"
down_revision = "0003"

_TABLES = (
    "policy",
    "catalog_version",
    "event",
    "enforcement",
    "execution",
    "lane",
    "entry",
    "worker",
    "execution_output",
)


def upgrade() -> None:
    _create_policy()
    _create_catalog_version()
    _create_event()
    _create_enforcement()
    _create_execution()
    _create_lane()
    _create_entry()
    _create_worker()
    _create_execution_output()


def downgrade() -> None:
    for name in reversed(_TABLES):
        op.drop_table(name)


def _create_policy() -> None:
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


def _create_catalog_version() -> None:
    op.create_table(
        "catalog_version",
        sa.Column("version", sa.BigInteger, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("version", name="pk_catalog_version"),
    )
    op.execute("INSERT INTO catalog_version (version) VALUES (1)")


def _create_event() -> None:
    op.create_table(
        "event",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("trigger", Id),
        sa.Column("trigger_ref", sa.Text, nullable=False),
        sa.Column("source", Id),
        sa.Column("source_ref", sa.Text),
        sa.Column("rule", Id),
        sa.Column("rule_ref", sa.Text),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("processed_at", Moment),
        sa.Column("config", JsonText),
        sa.Column("rules", JsonText),
        sa.Column("payload", JsonText, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_event_rule_ref",
        "event",
        ["rule_ref", "id"],
        postgresql_where=sa.text("rule_ref IS NOT NULL"),
        sqlite_where=sa.text("rule_ref IS NOT NULL"),
    )
    op.create_index("ix_event_trigger_ref_id", "event", ["trigger_ref", "id"])
    op.create_index(
        "ix_event_unprocessed",
        "event",
        ["id"],
        postgresql_where=sa.text("processed_at IS NULL"),
        sqlite_where=sa.text("processed_at IS NULL"),
    )
    op.create_index(
        "uq_event_idempotency_key",
        "event",
        ["idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
    )


def _create_enforcement() -> None:
    op.create_table(
        "enforcement",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("rule", Id),
        sa.Column("rule_ref", sa.Text, nullable=False),
        sa.Column("event", Id),
        sa.Column("trigger_ref", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False, server_default="created"),
        sa.Column("reason", sa.Text),
        sa.Column("warnings", JsonText),
        sa.Column("resolved_at", Moment),
        sa.Column("condition", sa.Text, nullable=False, server_default="all"),
        sa.Column("conditions", JsonText, nullable=False, server_default="{}"),
        sa.Column("config", JsonText),
        sa.Column("payload", JsonText),
        sa.Column("created", Moment, nullable=False, server_default=Now()),
        sa.Column("updated", Moment, nullable=False, server_default=Now()),
        sa.PrimaryKeyConstraint("id", name="pk_enforcement"),
        sa.UniqueConstraint("event", "rule", name="uq_enforcement_event_rule"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_enforcement_created",
        "enforcement",
        ["id"],
        postgresql_where=sa.text("status = 'created'"),
        sqlite_where=sa.text("status = 'created'"),
    )
    op.create_index("ix_enforcement_rule_ref_id", "enforcement", ["rule_ref", "id"])


def _create_execution() -> None:
    op.create_table(
        "execution",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("action", Id),
        sa.Column("action_ref", sa.Text, nullable=False),
        sa.Column("definition", Id, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("priority", sa.SmallInteger, nullable=False),
        sa.Column("parent", Id),
        sa.Column("original_execution", Id),
        sa.Column("enforcement", Id),
        sa.Column("rule_ref", sa.Text),
        sa.Column("trigger_ref", sa.Text),
        sa.Column("executor", Id),
        sa.Column("worker", Id),
        sa.Column("started_at", Moment),
        sa.Column("timeout_seconds", sa.Float),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("trace_tag", sa.Text),
        sa.Column("permission_set_refs", JsonText),
        sa.Column("worker_selector", JsonText),
        sa.Column("worker_tolerations", JsonText),
        sa.Column("worker_affinity", JsonText),
        sa.Column("workflow_task", JsonText),
        sa.Column("env_vars", JsonText),
        sa.Column("config", JsonText, nullable=False),
        sa.Column("result", JsonText),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_execution"),
        sqlite_autoincrement=True,
        postgresql_with={"fillfactor": 80},
    )
    op.create_index("ix_execution_action_ref_id", "execution", ["action_ref", "id"])
    op.create_index(
        "ix_execution_enforcement",
        "execution",
        ["enforcement", "id"],
        postgresql_where=sa.text("enforcement IS NOT NULL"),
        sqlite_where=sa.text("enforcement IS NOT NULL"),
    )
    op.create_index(
        "ix_execution_executor",
        "execution",
        ["executor", "id"],
        postgresql_where=sa.text("executor IS NOT NULL"),
        sqlite_where=sa.text("executor IS NOT NULL"),
    )
    op.create_index(
        "ix_execution_failure",
        "execution",
        ["failure", "id"],
        postgresql_where=sa.text("failure IS NOT NULL"),
        sqlite_where=sa.text("failure IS NOT NULL"),
    )
    op.create_index(
        "ix_execution_parent",
        "execution",
        ["parent", "id"],
        postgresql_where=sa.text("parent IS NOT NULL"),
        sqlite_where=sa.text("parent IS NOT NULL"),
    )
    op.create_index(
        "ix_execution_rule_ref",
        "execution",
        ["rule_ref", "id"],
        postgresql_where=sa.text("rule_ref IS NOT NULL"),
        sqlite_where=sa.text("rule_ref IS NOT NULL"),
    )
    op.create_index(
        "uq_execution_idempotency_key",
        "execution",
        ["idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
    )


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
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lane"),
        sa.UniqueConstraint("action_ref", "group_key", name="uq_lane_action_ref_group_key"),
        sqlite_autoincrement=True,
        postgresql_with={"fillfactor": 50},
    )


def _create_entry() -> None:
    op.create_table(
        "entry",
        sa.Column("execution", Id, nullable=False, autoincrement=False),
        sa.Column("lane", Id, nullable=False),
        sa.Column("band", sa.SmallInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("enqueued_at", Moment, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("definition", Id, nullable=False),
        sa.Column("worker_selector", JsonText),
        sa.Column("worker", Id),
        sa.Column("lease_expires_at", Moment),
        sa.PrimaryKeyConstraint("execution", name="pk_entry"),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index(
        "ix_entry_handed",
        "entry",
        ["worker"],
        postgresql_where=sa.text("state = 'handed'"),
        sqlite_where=sa.text("state = 'handed'"),
    )
    op.create_index(
        "ix_entry_queued",
        "entry",
        ["lane", "band", "sequence"],
        postgresql_where=sa.text("state = 'queued'"),
        sqlite_where=sa.text("state = 'queued'"),
    )
    op.create_index(
        "ix_entry_ready",
        "entry",
        ["band", "enqueued_at", "sequence"],
        postgresql_where=sa.text("state = 'ready'"),
        sqlite_where=sa.text("state = 'ready'"),
    )


def _create_worker() -> None:
    op.create_table(
        "worker",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("worker_type", sa.Text, nullable=False),
        sa.Column("worker_role", sa.Text, nullable=False),
        sa.Column("host", sa.Text),
        sa.Column("port", sa.Integer),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("capacity", sa.Integer, nullable=False),
        sa.Column("supported_runtimes", JsonText, nullable=False),
        sa.Column("labels", JsonText, nullable=False),
        sa.Column("taints", JsonText, nullable=False),
        sa.Column("incarnation", sa.Text, nullable=False),
        sa.Column("last_heartbeat", Moment, nullable=False),
        sa.Column("cordoned", sa.Boolean, nullable=False),
        sa.Column("cordon_reason", sa.Text),
        sa.Column("cordoned_by", Id),
        sa.Column("cordoned_at", Moment),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_worker"),
        sa.UniqueConstraint("name", name="uq_worker_name"),
        sqlite_autoincrement=True,
        postgresql_with={"fillfactor": 50},
    )


def _create_execution_output() -> None:
    op.create_table(
        "execution_output",
        sa.Column("execution", Id, nullable=False, autoincrement=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("begins_at", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint(
            "execution", "stream", "attempt", "begins_at", name="pk_execution_output"
        ),
    )
