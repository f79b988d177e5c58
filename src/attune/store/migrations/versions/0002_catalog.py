"""What users define: packs, their content, and identities."""

import sqlalchemy as sa
from alembic import op

from attune.store.schema import Id, JsonText, Moment

revision = "0002"
down_revision = "0001"

_TABLES = (
    "identity",
    "pack",
    "permission_set",
    "runtime",
    "trigger",
    "action",
    "action_definition",
    "rule",
)


def upgrade() -> None:
    _create_identity()
    _create_pack()
    _create_permission_set()
    _create_runtime()
    _create_trigger()
    _create_action()
    _create_action_definition()
    _create_rule()


def downgrade() -> None:
    for name in reversed(_TABLES):
        op.drop_table(name)


def _create_identity() -> None:
    op.create_table(
        "identity",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("login", sa.Text, nullable=False),
        sa.Column("display_name", sa.Text),
        sa.Column("password_hash", sa.Text),
        sa.Column("attributes", JsonText, nullable=False),
        sa.Column("frozen", sa.Boolean, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_identity"),
        sa.UniqueConstraint("login", name="uq_identity_login"),
        sqlite_autoincrement=True,
    )


def _create_pack() -> None:
    op.create_table(
        "pack",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("author", sa.Text),
        sa.Column("email", sa.Text),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("is_standard", sa.Boolean, nullable=False),
        sa.Column("conf_schema", JsonText, nullable=False),
        sa.Column("config", JsonText, nullable=False),
        sa.Column("meta", JsonText, nullable=False),
        sa.Column("tags", JsonText, nullable=False),
        sa.Column("runtime_deps", JsonText, nullable=False),
        sa.Column("dependencies", JsonText, nullable=False),
        sa.Column("testing", JsonText),
        sa.Column("pack_dir", sa.Text),
        sa.Column("owner_identity", Id),
        sa.Column("declared", JsonText),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pack"),
        sa.UniqueConstraint("ref", name="uq_pack_ref"),
        sa.ForeignKeyConstraint(
            ["owner_identity"], ["identity.id"], name="fk_pack_owner_identity", ondelete="SET NULL"
        ),
        sqlite_autoincrement=True,
    )


def _create_permission_set() -> None:
    op.create_table(
        "permission_set",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("pack", Id),
        sa.Column("pack_ref", sa.Text),
        sa.Column("label", sa.Text),
        sa.Column("description", sa.Text),
        sa.Column("grants", JsonText, nullable=False),
        sa.Column("is_adhoc", sa.Boolean, nullable=False),
        sa.Column("declared", JsonText),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_permission_set"),
        sa.UniqueConstraint("ref", name="uq_permission_set_ref"),
        sa.ForeignKeyConstraint(
            ["pack"], ["pack.id"], name="fk_permission_set_pack", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )


def _create_runtime() -> None:
    op.create_table(
        "runtime",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("pack", Id),
        sa.Column("pack_ref", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("aliases", JsonText, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("distributions", JsonText, nullable=False),
        sa.Column("installation", JsonText),
        sa.Column("execution_config", JsonText, nullable=False),
        sa.Column("is_adhoc", sa.Boolean, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runtime"),
        sa.UniqueConstraint("ref", name="uq_runtime_ref"),
        sa.ForeignKeyConstraint(["pack"], ["pack.id"], name="fk_runtime_pack", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )


def _create_trigger() -> None:
    op.create_table(
        "trigger",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("pack", Id),
        sa.Column("pack_ref", sa.Text),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("type", sa.Text),
        sa.Column("param_schema", JsonText),
        sa.Column("out_schema", JsonText),
        sa.Column("tags", JsonText, nullable=False),
        sa.Column("webhook_enabled", sa.Boolean, nullable=False),
        sa.Column("webhook_key", sa.Text),
        sa.Column("webhook_config", JsonText),
        sa.Column("is_adhoc", sa.Boolean, nullable=False),
        sa.Column("declared", JsonText),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_trigger"),
        sa.UniqueConstraint("ref", name="uq_trigger_ref"),
        sa.ForeignKeyConstraint(["pack"], ["pack.id"], name="fk_trigger_pack", ondelete="CASCADE"),
        sa.UniqueConstraint("webhook_key", name="uq_trigger_webhook_key"),
        sqlite_autoincrement=True,
    )


def _create_action() -> None:
    op.create_table(
        "action",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("pack", Id, nullable=False),
        sa.Column("pack_ref", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("entrypoint", sa.Text, nullable=False),
        sa.Column("runtime", Id),
        sa.Column("runtime_ref", sa.Text),
        sa.Column("runtime_version_constraint", sa.Text),
        sa.Column("required_worker_runtimes", JsonText, nullable=False),
        sa.Column("param_schema", JsonText),
        sa.Column("out_schema", JsonText),
        sa.Column("parameter_delivery", sa.Text, nullable=False),
        sa.Column("parameter_format", sa.Text, nullable=False),
        sa.Column("output_format", sa.Text, nullable=False),
        sa.Column("timeout_seconds", sa.Integer),
        sa.Column("max_retries", sa.Integer, nullable=False),
        sa.Column("on_worker_lost", sa.Text, nullable=False),
        sa.Column("worker_selector", JsonText, nullable=False),
        sa.Column("worker_tolerations", JsonText, nullable=False),
        sa.Column("worker_affinity", JsonText, nullable=False),
        sa.Column("default_execution_permission_set_refs", JsonText, nullable=False),
        sa.Column("accesses_mcp", sa.Boolean, nullable=False),
        sa.Column("workflow_def", Id),
        sa.Column("tags", JsonText, nullable=False),
        sa.Column("is_adhoc", sa.Boolean, nullable=False),
        sa.Column("declared", JsonText),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_action"),
        sa.UniqueConstraint("ref", name="uq_action_ref"),
        sa.ForeignKeyConstraint(["pack"], ["pack.id"], name="fk_action_pack", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["runtime"], ["runtime.id"], name="fk_action_runtime", ondelete="SET NULL"
        ),
        sqlite_autoincrement=True,
    )


def _create_action_definition() -> None:
    op.create_table(
        "action_definition",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("action_ref", sa.Text, nullable=False),
        sa.Column("definition", JsonText, nullable=False),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_action_definition"),
        sa.UniqueConstraint("digest", name="uq_action_definition_digest"),
        sqlite_autoincrement=True,
    )


def _create_rule() -> None:
    op.create_table(
        "rule",
        sa.Column("id", Id, sa.Identity(), nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("pack", Id, nullable=False),
        sa.Column("pack_ref", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("trigger", Id),
        sa.Column("trigger_ref", sa.Text, nullable=False),
        sa.Column("trigger_params", JsonText, nullable=False),
        sa.Column("conditions", JsonText, nullable=False),
        sa.Column("action", Id),
        sa.Column("action_ref", sa.Text, nullable=False),
        sa.Column("action_params", JsonText, nullable=False),
        sa.Column("strict", sa.Boolean, nullable=False),
        sa.Column("permission_set_refs", JsonText),
        sa.Column("owner_identity", Id),
        sa.Column("is_adhoc", sa.Boolean, nullable=False),
        sa.Column("declared", JsonText),
        sa.Column("created", Moment, nullable=False),
        sa.Column("updated", Moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_rule"),
        sa.UniqueConstraint("ref", name="uq_rule_ref"),
        sa.ForeignKeyConstraint(["pack"], ["pack.id"], name="fk_rule_pack", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["trigger"], ["trigger.id"], name="fk_rule_trigger", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["action"], ["action.id"], name="fk_rule_action", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["owner_identity"], ["identity.id"], name="fk_rule_owner_identity", ondelete="SET NULL"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_rule_enabled_trigger",
        "rule",
        ["trigger"],
        postgresql_where=sa.text("enabled"),
        sqlite_where=sa.text("enabled"),
    )
